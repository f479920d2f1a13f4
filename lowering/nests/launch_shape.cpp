#include "lowering/nests/launch_shape.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/stage_anchors.h"

namespace tilewright {

void set_launch_shape(Nest &nest, const ScheduledStage &schedule, const std::string &scanned) {
    if (!scanned.empty()) {
        // The running value is one for each element of the other axes: their serial loops stand outside.
        std::stable_sort(nest.loops.begin(), nest.loops.end(), [&](const NestLoop &a, const NestLoop &b) {
            const auto inner = [&](const NestLoop &l) {
                return nest.axes[l.axis].name == scanned || nest.leaf(l).level != tile::Level::loop;
            };
            return inner(a) < inner(b);
        });
    }
    std::stable_sort(nest.loops.begin(), nest.loops.end(), [&](const NestLoop &a, const NestLoop &b) {
        return (nest.leaf(a).level == tile::Level::vector) < (nest.leaf(b).level == tile::Level::vector);
    });
    Extent blocks = 1;
    std::int64_t threads = 1;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (leaf.level == tile::Level::grid || leaf.level == tile::Level::cluster) {
                blocks = blocks * leaf.extent;
                nest.cluster *= leaf.level == tile::Level::cluster ? static_cast<int>(leaf.extent.value()) : 1;
            } else if (leaf.level == tile::Level::thread) {
                if (!leaf.extent.is_constant()) {
                    schedule_error(schedule.at_location, schedule.name,
                                   fmt::format("loop '{}' of symbolic extent {} is bound to threads", leaf.name, leaf.extent.to_string()),
                                   "split it by a constant and bind the inner part");
                }
                threads = std::max(threads, leaf.extent.value() * leaf.unit_stride.value());
            }
        }
    }
    if (threads > 1024) {
        schedule_error(schedule.at_location, schedule.name,
                       fmt::format("its loops ask for {} threads a block; there are at most 1024", threads), "split by smaller factors");
    }
    nest.threads = static_cast<int>(threads);
    nest.blocks = blocks;
    if (const ScheduleFlag *bounds = schedule.find_flag("launch_bounds")) {
        nest.min_blocks = static_cast<int>(bounds->number(1));
    }
}

namespace {

/// What belongs to a launch is said of the stage that gives its loops.
void refuse_of_member(const ScheduledStage &member, const std::string &anchor, const char *directive) {
    if (const ScheduleFlag *flag = member.find_flag(directive)) {
        schedule_error(flag->directive.location, flag->directive.to_string(),
                       fmt::format("the stage is computed in the launch of '{}'", anchor),
                       fmt::format("give {} to '{}'", directive, anchor));
    }
}

}  // namespace

void check_launch_directives(const Nest &nest, const Algorithm &algorithm, const ScheduledKernel &schedule) {
    const auto scheduled = [&](int stage) -> const ScheduledStage & {
        return scheduled_stage(schedule, algorithm.stages[static_cast<std::size_t>(stage)]);
    };
    const bool multiplies = std::any_of(nest.members.begin(), nest.members.end(),
                                        [&](const Member &member) { return scheduled(member.stage).find_flag("tensor_core") != nullptr; });
    for (const Member &member : nest.members) {
        if (multiplies) {
            continue;
        }
        for (const char *directive : {"launch_bounds", "pipeline", "align"}) {
            if (member.stage != nest.anchor) {
                refuse_of_member(scheduled(member.stage), scheduled(nest.anchor).name, directive);
            }
        }
    }
    const Form form = classify(algorithm.stages[static_cast<std::size_t>(nest.anchor)]);
    const ScheduleFlag *pipeline = scheduled(nest.anchor).find_flag("pipeline");
    if (!multiplies && pipeline && (form == Form::scatter || form == Form::sort)) {
        schedule_error(pipeline->directive.location, pipeline->directive.to_string(),
                       fmt::format("stage '{}' {}: its loads are not made ahead", scheduled(nest.anchor).name,
                                   form == Form::sort ? "sorts" : "adds to places that it computes"),
                       "remove pipeline");
    }
    const ScheduleFlag *bounds = multiplies ? nullptr : scheduled(nest.anchor).find_flag("launch_bounds");
    if (bounds && bounds->number(0) != nest.threads) {
        schedule_error(bounds->directive.location, bounds->directive.to_string(),
                       fmt::format("its loops ask for {} threads a block", nest.threads),
                       fmt::format("write launch_bounds({}, {}), or bind other loops to threads", nest.threads, bounds->number(1)));
    }
}

}  // namespace tilewright
