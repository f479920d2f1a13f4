// Golden files: expected texts that are checked in. TILEWRIGHT_UPDATE_GOLDENS=1 rewrites them; a missing one fails.
#pragma once

#include <string>

namespace tilewright::tests {

/// Compares a text with the file tests/golden/NAME, relative to the repository root. Fails the running test at the first differing line.
void check_golden(const std::string &name, const std::string &text);

}  // namespace tilewright::tests
