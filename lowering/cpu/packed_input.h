// A tensor that is copied whole before the kernel runs, into the order in which its reader's loops take it: a step of the plan of its own,
// which runs once, at load, where the tensor is a weight.
#pragma once

#include <string>
#include <vector>

#include <Halide.h>

#include "dsl/algorithm/algorithm.h"
#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// X.in(Y) computed at the root, X a tensor: its loops, split ones too, are the dimensions of what is stored, the innermost contiguous.
class PackedInput {
public:
    PackedInput(const TensorInput &input, int index, const ScheduledStage &copy);

    static bool applies_to(const ScheduledStage &copy, const Algorithm &algorithm);

    const std::string &copy() const { return scheduled_.name; }
    int input() const { return index_; }                   ///< of the kernel, that is packed
    const TensorMeta &meta() const { return meta_; }       ///< of the packed tensor
    Halide::ImageParam source() const { return source_; }  ///< the tensor, as the code that packs it reads it
    Halide::ImageParam packed() const { return packed_; }  ///< the packed tensor, as the kernel reads it
    Halide::Func packing() const { return packing_; }      ///< scheduled
    /// What the tensor holds at these places. They may lie in the last tile beyond the end of an axis.
    Halide::Expr read(const std::vector<Halide::Expr> &places) const;

private:
    void define_packing();
    void schedule_packing();

    const ScheduledStage &scheduled_;
    int index_;
    TensorMeta meta_;
    Halide::ImageParam source_, packed_;
    Halide::Func packing_;
};

}  // namespace tilewright
