// Launches of a sort: the row's keys are read through what is fused into the sort, results are stored to all that want them.
#pragma once

#include <string>
#include <vector>

#include "lowering/nests/sort_plan.h"
#include "lowering/nests/special_forms.h"
#include "lowering/nests/stage_values.h"

namespace tilewright {

/// A sort stage as its launches see it.
struct SortStage {
    SortStage(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, const ScheduledKernel &schedule,
              const GpuFacts &facts);

    const Stage &stage() const { return kernel.algorithm.stages[index]; }
    Halide::Type type() const { return stage().func.types()[0]; }

    const Kernel &kernel;
    const Placement &placement;
    Storage &storage;
    int index;  ///< of the stage
    Sort sort;
    SortPlan plan;
    std::vector<Extent> leading;  ///< extents of the axes before the row's
    Extent rows, length, count;   ///< of a row: all elements, and those that are wanted
    std::int64_t longest;         ///< the largest value of `length`
};

/// One launch under construction.
class SortLaunch {
public:
    SortLaunch(const SortStage &sort, const std::string &suffix, std::vector<tile::Axis> axes, Extent blocks);

    /// The order-preserving key of the row's element.
    Halide::Expr key_at(const Halide::Expr &row, const Halide::Expr &place);
    /// Key and place of an element become the row's result number `rank`; `place` is the name of a variable.
    tile::Block store_result(const Halide::Expr &row, const Halide::Expr &rank, const Halide::Expr &key, const std::string &place);
    /// key[i] and place[i] of the elements that a thread holds; what lies beyond the row has the greatest key. The axis `place` has an
    /// unrolled leaf "place_item".
    tile::Statement hold(const Halide::Expr &row);

    /// The same of rows that another launch left in global memory.
    tile::Statement hold(const Halide::Expr &row, const tile::Buffer &keys, const tile::Buffer &places);

    /// A buffer of the launch's own, called STAGE_name.
    const tile::Buffer &add(tile::Memory memory, const std::string &name, Halide::Type type, std::int64_t elements);
    tile::Statement call(const std::string &function, std::vector<std::string> templates, std::vector<tile::Invoke::Argument> arguments,
                         std::vector<std::string> reads, std::vector<std::string> writes);

    StageValues &values() { return values_; }
    tile::Launch &launch() { return launch_; }
    std::string name(const std::string &part) const;

private:
    Halide::Expr value_at(const Halide::Expr &row, const Halide::Expr &place);
    Halide::Expr greatest_key() const;
    tile::Statement hold_values(const Halide::Expr &key, const Halide::Expr &place);
    Nest nest() const;

    const SortStage &sort_;
    tile::Launch launch_;
    Nest nest_;
    StageValues values_;
};

/// An axis that all threads of a block walk along in steps, in order.
tile::Axis walked_by(const std::string &name, const Extent &extent, int threads);
/// Elements as device/sort_digits.h has them: warps one after another, each item by item.
std::vector<tile::Leaf> held_by_warps(const SortPlan &plan);
tile::Block within(const tile::Axis &axis, tile::Block body);
tile::Statement walk(const tile::Axis &axis, tile::Block body);

/// One launch for each part of a pass over one digit.
std::vector<tile::Launch> sort_by_passes(const SortStage &sort);

}  // namespace tilewright
