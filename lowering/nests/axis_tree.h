// Loops of a scheduled stage as axes: what is only split stays one axis with leaves; what is fused becomes a new one.
#pragma once

#include "dsl/schedule/loop_nest.h"
#include "lowering/nests/nest.h"

namespace tilewright {

struct AxisTree {
    std::vector<tile::Axis> axes;
    std::map<std::string, Halide::Expr> roots;  ///< the stage's own axes over the axes here
    std::vector<NestLoop> loops;                ///< serial, unrolled and vector leaves in the schedule's order
    std::vector<std::pair<std::set<std::string>, Halide::Expr>> guards;
    std::vector<std::string> reduction_axes;  ///< names of axes that come from reduction variables
};

/// `prefix` goes before each axis and leaf name; `only_reductions` leaves out the value's axes.
AxisTree build_axis_tree(const ScheduledStage &stage, const std::string &prefix, bool only_reductions);

}  // namespace tilewright
