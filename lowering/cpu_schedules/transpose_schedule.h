// The loop nest of a stage that reads tensors across the way it is stored: square tiles, each brought row by row into fast memory first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/builder.h"
#include "lowering/cpu_schedules/kernel_flow.h"

namespace tilewright {

struct Transposition {
    int stored = -1;                    ///< argument along which the stage's elements are neighbours
    int read = -1;                      ///< argument along which those of the tensors are
    std::vector<const Read *> tensors;  ///< read across
};

/// A pointwise stage where such tensors are, both axes are long enough for tiles, and its own expression reads the tensors.
std::optional<Transposition> find_transposition(const Kernel &kernel, const KeptStage &kept);

/// Tiles the stage and stages the tensors; returns its loops, outermost first, that stand outside the tile.
std::vector<std::string> schedule_transposition(const KeptStage &kept, const Transposition &transposition, ScheduleBuilder &builder);

}  // namespace tilewright
