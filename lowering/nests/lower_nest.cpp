#include "lowering/nests/lower_nest.h"

#include "dsl/error.h"
#include "lowering/nests/finish_reductions.h"
#include "lowering/nests/lower_members.h"

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

}  // namespace

std::vector<tile::Launch> lower_nest(const Kernel &kernel, const Placement &placement, int index, Storage &storage, const ScheduledKernel &schedule,
                                     std::set<int> &finished) {
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
