#include "lowering/nests/lower_nest.h"

#include "dsl/error.h"
#include "dsl/schedule/directive_errors.h"
#include "lowering/nests/finish_reductions.h"
#include "lowering/nests/lower_members.h"
#include "lowering/nests/stage_anchors.h"
#include "lowering/passes/load_ahead.h"

namespace tilewright {

namespace {

void lower_member(NestWork &work, const Member &member) {
    const Stage &stage = work.stage(member.stage);
    if (member.in_shared) {
        lower_tile(work, member);
        return;
    }
    if (!stage.func.function().has_update_definition()) {
        lower_value(work, member);
        return;
    }
    const auto fold = match_fold(stage.func);
    internal_assert(fold.has_value(), "stage {} is no fold", stage.name());
    fold->scan_axis >= 0 ? lower_scan(work, member, *fold) : lower_reduction(work, member, *fold);
}

/// The serial loop whose loads are made ahead, or the blocks whose loads lie in shared memory.
void note_pipeline(const Nest &nest, const ScheduledStage &schedule, tile::Launch &launch) {
    const ScheduleFlag *flag = schedule.find_flag("pipeline");
    if (!flag) {
        return;
    }
    const std::string &name = flag->word(0);
    const tile::Level wanted = flag->number(1) == 1 ? tile::Level::grid : tile::Level::loop;
    std::string loop;
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            const bool is_named = leaf.name == name || (axis.name == name && axis.leaves.size() == 1);
            loop = is_named && leaf.level == wanted ? leaf.name : loop;
        }
    }
    if (loop.empty()) {
        schedule_error(flag->directive.location, flag->directive.to_string(),
                       "loads are made ahead of a serial loop's iterations, one or more",
                       "name a loop that is neither unrolled nor bound and 2 stages or more, or a loop over blocks and 1 stage: each keeps "
                       "its row in shared memory");
    }
    const Pipeline pipeline{static_cast<int>(flag->number(1)), place_of(flag->directive)};
    launch.body.insert(launch.body.begin(), note_of_pipeline(loop, pipeline));
}

}  // namespace

std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int index, Storage &storage,
                                     const ScheduledKernel &schedule, std::set<int> &finished) {
    NestWork work(kernel, placement, index, storage, schedule);
    const Nest &nest = work.nest;
    tile::Launch &launch = work.launch;
    launch.name = identifier(kernel.name + "_" + work.stage(nest.anchor).name());
    launch.axes = nest.axes;
    launch.blocks = nest.blocks;
    launch.threads = nest.threads;
    launch.cluster = nest.cluster;
    launch.min_blocks_per_multiprocessor = nest.min_blocks;
    for (const Member &member : nest.members) {
        lower_member(work, member);
    }
    std::vector<SegmentLoop> loops;
    for (const NestLoop &loop : nest.loops) {
        const tile::Leaf &leaf = nest.leaf(loop);
        loops.push_back({leaf.name, leaf.extent, leaf.level});
    }
    launch.body = arrange(work.pieces, loops);
    note_pipeline(nest, scheduled_stage(schedule, work.stage(nest.anchor)), launch);
    if (launch.cluster > 1) {  // nobody writes to a block's shared memory before that block runs
        tile::Invoke meet;
        meet.function = "meet_cluster";
        meet.whole_block = true;
        launch.body.insert(launch.body.begin(), tile::Statement{meet});
    }
    std::vector<tile::Launch> launches{std::move(launch)};
    for (tile::Launch &finish : finish_reductions(work, finished)) {
        launches.push_back(std::move(finish));
    }
    return launches;
}

}  // namespace tilewright
