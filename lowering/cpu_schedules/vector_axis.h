// Along which axis a stage's loops are best made wide: where its reads and its store run through memory one after another.
#pragma once

#include <string>

#include "lowering/cpu_schedules/kernel_flow.h"

namespace tilewright {

struct VectorAxis {
    std::string name;  ///< empty: none is worth it
    bool is_reduction = false;
    Extent extent;
    int lanes = 1;
};

/// `with_reductions`: reduction variables may be chosen too. `depth`: loops of the anchor inside which the stage is computed, of whose axes
/// it has one place at a time.
VectorAxis choose_vector_axis(const Kernel &kernel, const KeptStage &stage, bool with_reductions, int depth = 0);

/// Lanes for an axis of this extent and elements of at most so many bits: the widest register, less for short axes; 1 below four.
int lanes_for(const Extent &extent, int bits);
/// Widest element that the stage computes with.
int widest_bits(const KeptStage &stage);

/// Elements in memory between neighbours along `variable` of what a read touches; nothing where that is not constant.
std::optional<std::int64_t> stride_along(const Kernel &kernel, const Read &read, const std::string &variable);

}  // namespace tilewright
