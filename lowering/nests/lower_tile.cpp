#include <numeric>

#include "dsl/error.h"
#include "lowering/nests/block_tile.h"
#include "lowering/nests/lower_members.h"
#include "lowering/nests/placed_reads.h"
#include "lowering/nests/stage_anchors.h"

namespace tilewright {

using Halide::Expr;

namespace {

/// Where the nest reads the stage, through inlined stages.
std::vector<std::vector<Expr>> places_read(const NestWork &work, int stage) {
    std::vector<std::vector<Expr>> places;
    for (const Member &reader : work.nest.members) {
        if (reader.stage == stage) {
            continue;
        }
        for (PlacedRead &read :
             reads_through_inlined(work.kernel.algorithm, work.placement.nest_of, reader.stage, reader.environment, work.nest.ranges)) {
            if (read.producer == work.stage(stage).name()) {
                places.push_back(std::move(read.indices));
            }
        }
    }
    return places;
}

}  // namespace

void lower_tile(NestWork &work, const Member &member) {
    const Stage &stage = work.stage(member.stage);
    const ScheduledStage &schedule = scheduled_stage(work.schedule, stage);
    const auto refuse = [&](const std::string &cause) {
        schedule_error(schedule.at_location, stage.name(), cause, "store it in registers or compute it at the root");
    };
    const Halide::Internal::Function function = stage.func.function();
    if (function.has_update_definition() || function.outputs() > 1) {
        refuse("a tile in shared memory is computed place by place, and this stage is a reduction");
    }
    if (!work.storage.targets(member.stage, 0).empty()) {
        refuse("a tile in shared memory is not stored elsewhere, and this stage leaves the kernel");
    }
    const std::set<std::string> around = loops_around_tile(work.nest, work.stage(work.nest.anchor).name(), schedule);
    const auto places = places_read(work, member.stage);
    const auto region = places.empty() ? std::nullopt : tile_region(work.nest, places, around);
    if (!region) {
        refuse("a block does not read a box of it");
    }
    const tile::Buffer tile = tile_buffer(work, stage.name() + "_tile", stage.func.types()[0], *region, places.front(), stage.rank() - 1);
    std::vector<int> order(stage.rank());
    std::iota(order.begin(), order.end(), 0);
    fill_tile(work, tile, *region, stage.extents, order, around, [&](const std::vector<Expr> &place) {
        Substitution environment;
        for (std::size_t i = 0; i < place.size(); ++i) {
            environment[function.args()[i]] = place[i];
        }
        return work.stage_values.evaluate(function.definition().values()[0], environment, member.stage);
    });
    work.stage_values.keep_tile(member.stage, tile, region->origin);
}

}  // namespace tilewright
