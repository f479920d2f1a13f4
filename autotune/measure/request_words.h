// Requests to the measuring child are lines of words that tabs separate.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

/// Empty words between separators count.
std::vector<std::string> split_words(const std::string &text, char separator);

}  // namespace tilewright
