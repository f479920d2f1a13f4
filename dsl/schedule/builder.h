// Schedules written by hand in C++: the same text as a line of a schedule file, with names in quotes.
//
//     ScheduleBuilder s;
//     s["divide"].split("d1", "o", "i", 8).vectorize("i").gpu_blocks("d0").gpu_threads("o");
//     s["x"].in("dot").compute_at("dot", "ko").store_in("shared");
//
// Nothing is checked here: apply_directives() refuses what is wrong and names the directive.
#pragma once

#include <string>
#include <utility>

#include "dsl/schedule/schedule.h"

namespace tilewright {

/// The directives of one stage; each call adds one to the builder that made it and returns the same object, for chaining.
class StageSchedule {
public:
    using Name = std::string;
    using Count = std::int64_t;

    StageSchedule(Directives &into, Name stage) : into_(&into), stage_(std::move(stage)) {}
    /// The copy of this tensor that `reader` reads.
    StageSchedule in(const Name &reader) const { return {*into_, stage_ + ".in(" + reader + ")"}; }

    StageSchedule &split(Name axis, Name outer, Name inner, Count factor) { return add("split", axis, outer, inner, factor); }
    StageSchedule &fuse(Name outer, Name inner, Name fused) { return add("fuse", outer, inner, fused); }
    template<typename... Axes> StageSchedule &reorder(Axes... innermost_first) { return add("reorder", Name(innermost_first)...); }
    StageSchedule &tile(Name x, Name y, Name xo, Name yo, Name xi, Name yi, Count fx, Count fy) {
        return add("tile", x, y, xo, yo, xi, yi, fx, fy);
    }
    StageSchedule &unroll(Name axis) { return add("unroll", axis); }
    StageSchedule &vectorize(Name axis) { return add("vectorize", axis); }
    StageSchedule &parallel(Name axis) { return add("parallel", axis); }
    template<typename... Axes> StageSchedule &gpu_blocks(Axes... axes) { return add("gpu_blocks", Name(axes)...); }
    template<typename... Axes> StageSchedule &gpu_threads(Axes... axes) { return add("gpu_threads", Name(axes)...); }
    StageSchedule &gpu_lanes(Name axis) { return add("gpu_lanes", axis); }
    StageSchedule &compute_at(Name stage, Name axis) { return add("compute_at", stage, axis); }
    StageSchedule &compute_with(Name stage, Name axis) { return add("compute_with", stage, axis); }
    StageSchedule &compute_root() { return add("compute_root"); }
    StageSchedule &compute_inline() { return add("compute_inline"); }
    StageSchedule &store_in(Name memory) { return add("store_in", memory); }
    StageSchedule &rfactor(Name reduction_axis, Name v) { return add("rfactor", reduction_axis, v); }
    StageSchedule &atomic() { return add("atomic"); }

    StageSchedule &align(Name axis, Count n) { return add("align", axis, n); }
    StageSchedule &shift_inwards(Name axis, Count n) { return add("shift_inwards", axis, n); }
    StageSchedule &reduce_across(Name level) { return add("reduce_across", level); }
    StageSchedule &split_blocks(Name reduction_axis, Count n) { return add("split_blocks", reduction_axis, n); }
    template<typename... Stages> StageSchedule &stream(Name axis, Stages... reductions) { return add("stream", axis, Name(reductions)...); }
    StageSchedule &sort_across(Name level) { return add("sort_across", level); }
    StageSchedule &preselect() { return add("preselect"); }
    StageSchedule &persistent() { return add("persistent"); }
    StageSchedule &launch_bounds(Count threads, Count blocks) { return add("launch_bounds", threads, blocks); }
    StageSchedule &cluster(Count x, Count y) { return add("cluster", x, y); }
    StageSchedule &raster(Count n) { return add("raster", n); }
    StageSchedule &pipeline(Name axis, Count stages) { return add("pipeline", axis, stages); }
    StageSchedule &async_copy() { return add("async_copy"); }
    StageSchedule &bulk_copy() { return add("bulk_copy"); }
    StageSchedule &multicast() { return add("multicast"); }
    StageSchedule &swizzle() { return add("swizzle"); }
    StageSchedule &tensor_core(Count m, Count n, Count k) { return add("tensor_core", m, n, k); }
    StageSchedule &precision(Name type) { return add("precision", type); }
    StageSchedule &sum_apart() { return add("sum_apart"); }
    StageSchedule &warpgroups(Count n) { return add("warpgroups", n); }
    StageSchedule &producer_warps(Count n) { return add("producer_warps", n); }
    StageSchedule &hide_exponentials() { return add("hide_exponentials"); }
    StageSchedule &take_turns() { return add("take_turns"); }
    StageSchedule &engine(Name name) { return add("engine", name); }

private:
    template<typename... Arguments> StageSchedule &add(const char *directive, Arguments... arguments) {
        into_->push_back({stage_, directive, {DirectiveArgument(std::move(arguments))...}, {}, {}});
        return *this;
    }

    Directives *into_;
    std::string stage_;
};

class ScheduleBuilder {
public:
    StageSchedule operator[](const std::string &stage) { return {directives, stage}; }
    Directives directives;
};

}  // namespace tilewright
