#include "lowering/nests/thread_conflicts.h"

#include <algorithm>
#include <vector>

#include "dsl/error.h"
#include "lowering/nests/stage_anchors.h"

namespace tilewright {
namespace {

std::vector<const tile::Leaf *> thread_leaves(const Nest &nest, const std::set<std::string> &axes) {
    std::vector<const tile::Leaf *> leaves;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (axes.count(axis.name) && leaf.level == tile::Level::thread && leaf.extent.value() > 1) {
                leaves.push_back(&leaf);
            }
        }
    }
    return leaves;
}

/// Whether some thread's number says something of both.
bool overlap(const tile::Leaf &a, const tile::Leaf &b) {
    const auto begin = [](const tile::Leaf &leaf) { return leaf.unit_stride.value(); };
    const auto end = [](const tile::Leaf &leaf) { return leaf.unit_stride.value() * leaf.extent.value(); };
    return begin(a) < end(b) && begin(b) < end(a);
}

/// Of the directive that binds the stage's reduction to threads.
SourceLocation place_of_binding(const ScheduledStage &stage) {
    const auto bound = std::find_if(stage.axes.begin(), stage.axes.end(), [](const LoopAxis &axis) {
        return axis.reduction && (axis.binding == Binding::thread || axis.binding == Binding::lane);
    });
    return bound == stage.axes.end() ? stage.at_location : bound->bound_at;
}

}  // namespace

void refuse_thread_conflicts(const Nest &nest, const Algorithm &algorithm, const ScheduledKernel &schedule) {
    for (const Member &member : nest.members) {
        for (const tile::Leaf *part : thread_leaves(nest, member.reduction_axes)) {
            for (const tile::Leaf *element : thread_leaves(nest, member.axes)) {
                if (overlap(*part, *element)) {
                    const ScheduledStage &stage = scheduled_stage(schedule, algorithm.stages[member.stage]);
                    schedule_error(place_of_binding(stage), stage.name,
                                   fmt::format("loop '{}' of its reduction is bound to the threads that loop '{}' runs over, each of which "
                                               "has an element of its own",
                                               part->name, element->name),
                                   "leave the reduction's loops serial, or compute the stage at the root");
                }
            }
        }
    }
}

}  // namespace tilewright
