// When stages may join a group with reductions: they run over its rows, and what several passes read stays on the chip.
#pragma once

#include <string>
#include <vector>

#include "lowering/fusion/groups.h"

namespace tilewright {

/// Whether the group with updates among `a` and `b` may take in the other, which stands before or after them; if not, `reason` says why.
bool around_updates(const Groups &groups, const FusionOptions &options, int a, int b, std::string &reason);

}  // namespace tilewright
