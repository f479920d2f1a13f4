#include "lowering/cpu/packed_input.h"

#include <map>

#include "lowering/cpu/buffer_constraints.h"
#include "lowering/cpu/reduction_loops.h"

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

/// What loops are in terms of the axes that they were made from.
class LoopValues {
public:
    LoopValues(const ScheduledStage &stage, const std::vector<Expr> &roots) : stage_(stage), roots_(roots) {}

    Expr value(int index) const {
        const LoopAxis &axis = stage_.axes[index];
        switch (axis.origin) {
            case LoopAxis::Origin::split_outer:
                return value(axis.parent) / factor_of(axis.parent);
            case LoopAxis::Origin::split_inner:
                return value(axis.parent) % factor_of(axis.parent);
            case LoopAxis::Origin::fused:
                return value(axis.parent) * to_halide(stage_.axes[axis.second_parent].extent) + value(axis.second_parent);
            default:
                return roots_[index];  // a copy's axes stand first
        }
    }

private:
    Expr factor_of(int split) const { return static_cast<int>(stage_.axes[stage_.axes[split].children[1]].factor); }

    const ScheduledStage &stage_;
    const std::vector<Expr> &roots_;
};

TensorMeta meta_of_loops(DType dtype, const ScheduledStage &copy) {
    std::vector<Extent> sizes;
    for (const int loop : copy.loop_order) {
        sizes.push_back(copy.axes[loop].extent);
    }
    return TensorMeta::contiguous(dtype, sizes);
}

}  // namespace

PackedInput::PackedInput(const TensorInput &input, int index, const ScheduledStage &copy)
    : scheduled_(copy),
      index_(index),
      meta_(meta_of_loops(input.meta.dtype, copy)),
      source_(to_halide(input.meta.dtype), input.meta.rank(), input.name() + "_source"),
      packed_(to_halide(input.meta.dtype), meta_.rank(), input.name() + "_packed"),
      packing_(input.name() + "_packing") {
    constrain(source_, input.meta);
    constrain(packed_, meta_);
    define_packing();
    schedule_packing();
}

bool PackedInput::applies_to(const ScheduledStage &copy, const Algorithm &algorithm) {
    return !copy.copy_of.empty() && copy.compute == ComputeLevel::root && algorithm.find_input(copy.copy_of);
}

void PackedInput::define_packing() {
    AxisValues values(scheduled_);
    std::vector<std::string> loops;
    for (const int loop : scheduled_.loop_order) {
        loops.push_back(scheduled_.axes[loop].name);
        values.set(loop, hi::Variable::make(Halide::Int(32), loops.back()));
    }
    std::vector<Expr> places;
    for (std::size_t i = 0; i < scheduled_.axes.size() && scheduled_.axes[i].origin == LoopAxis::Origin::root; i++) {
        // The last tile is filled with what is there: nobody looks at it.
        places.push_back(Halide::min(values.value(static_cast<int>(i)), to_halide(scheduled_.axes[i].extent) - 1));
    }
    packing_.function().define(loops, {hi::Call::make(source_.parameter(), places)});
    constrain(packing_.output_buffer(), meta_);
}

void PackedInput::schedule_packing() {
    std::vector<Halide::Var> innermost_first = packing_.args();
    std::reverse(innermost_first.begin(), innermost_first.end());
    packing_.reorder(std::vector<Halide::VarOrRVar>(innermost_first.begin(), innermost_first.end()));
    for (const int loop : scheduled_.loop_order) {
        const LoopAxis &axis = scheduled_.axes[loop];
        switch (axis.binding) {
            case Binding::parallel:
                packing_.parallel(Halide::Var(axis.name));
                break;
            case Binding::vectorized:
                packing_.vectorize(Halide::Var(axis.name));
                break;
            case Binding::unrolled:
                packing_.unroll(Halide::Var(axis.name));
                break;
            default:
                break;
        }
    }
}

Expr PackedInput::read(const std::vector<Expr> &places) const {
    const LoopValues values(scheduled_, places);
    std::vector<Expr> loops;
    for (const int loop : scheduled_.loop_order) {
        loops.push_back(values.value(loop));
    }
    return hi::Call::make(packed_.parameter(), loops);
}

}  // namespace tilewright
