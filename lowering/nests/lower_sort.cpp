// Rows that one warp or one block sorts in one launch; sort_by_passes() has those that many blocks share.
#include <algorithm>

#include "lowering/nests/invoke.h"
#include "lowering/nests/sort_launch.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

const tile::Axis &axis_of(const tile::Launch &launch, const std::string &name) {
    return *std::find_if(launch.axes.begin(), launch.axes.end(), [&](const tile::Axis &axis) { return axis.name == name; });
}

tile::Axis row_of_block(const Extent &rows) { return {"row", rows, {{"row_block", rows, Level::grid, 1, 1}}}; }

/// The results of a row that stands sorted in shared memory.
tile::Statement store_row(SortLaunch &sort, const tile::Buffer &keys, const tile::Buffer &places) {
    const Expr rank = tile::variable("rank"), from = hi::Cast::make(Halide::Int(32), tile::read(places, {rank}));
    tile::Block body{{tile::Let{"from", from}}};
    tile::Block stores = sort.store_result(tile::variable("row"), rank, tile::read(keys, {rank}), "from");
    body.insert(body.end(), stores.begin(), stores.end());
    return walk(axis_of(sort.launch(), "rank"), std::move(body));
}

tile::Launch sort_by_blocks(const SortStage &stage) {
    const SortPlan &plan = stage.plan;
    SortLaunch sort(stage, "",
                    {row_of_block(stage.rows), {"place", stage.length, held_by_warps(plan)}, walked_by("rank", stage.count, plan.threads)},
                    stage.rows);
    tile::Block &body = sort.launch().body;
    body.push_back(sort.hold(tile::variable("row")));
    const tile::Buffer sorted = sort.add(tile::Memory::shared, "sorted", plan.key, plan.held());
    const tile::Buffer order = sort.add(tile::Memory::shared, "order", Halide::UInt(16), plan.held());
    sort.add(tile::Memory::shared, "counts", Halide::Int(32), std::int64_t{256} * plan.warps());
    sort.add(tile::Memory::shared, "starts", Halide::Int(32), 256);
    sort.add(tile::Memory::shared, "scratch", Halide::Int(32), 32);
    body.push_back(sort.call("sort_block", {std::to_string(plan.threads)},
                             {buffer(sort.name("key")), buffer(sort.name("place")), scalar(to_halide(stage.length)), buffer(sorted.name),
                              buffer(order.name), buffer(sort.name("counts")), buffer(sort.name("starts")), buffer(sort.name("scratch"))},
                             {sort.name("key"), sort.name("place")}, {sorted.name, order.name}));
    body.push_back(store_row(sort, sorted, order));
    return std::move(sort.launch());
}

tile::Launch sort_by_warps(const SortStage &stage) {
    const SortPlan &plan = stage.plan;
    const Extent blocks = ceil_div(stage.rows, plan.warps());
    const tile::Axis row{
        "row", stage.rows, {{"row_block", blocks, Level::grid, plan.warps(), 1}, {"row_warp", plan.warps(), Level::thread, 1, 32}}};
    const tile::Axis place{
        "place", stage.length, {{"place_item", plan.items, Level::unroll, 32, 1}, {"place_lane", 32, Level::thread, 1, 1}}};
    const tile::Axis rank{
        "rank", stage.count, {{"rank_lane", 32, Level::thread, plan.items, 1}, {"rank_item", plan.items, Level::unroll, 1, 1}}};
    SortLaunch sort(stage, "", {row, place, rank}, blocks);
    tile::Statement held = sort.hold(tile::variable("row"));
    if (!row.exact()) {  // warps beyond the last row sort what is never stored
        tile::For &items = *held.as<tile::For>();
        items.body.back() = {tile::If{tile::variable("row") < to_halide(stage.rows), {items.body.back()}}};
    }
    tile::Block &body = sort.launch().body;
    body.push_back(std::move(held));
    const std::vector<std::string> registers{sort.name("key"), sort.name("place")};
    body.push_back(sort.call("sort_warp", {}, {buffer(registers[0]), buffer(registers[1])}, registers, registers));
    const Expr item = tile::variable("rank_item");
    const tile::Buffer key = *sort.launch().find_buffer(registers[0]), from = *sort.launch().find_buffer(registers[1]);
    tile::Block results{{tile::Let{"from", tile::read(from, {item})}}};
    tile::Block stores = sort.store_result(tile::variable("row"), tile::variable("rank"), tile::read(key, {item}), "from");
    results.insert(results.end(), stores.begin(), stores.end());
    body.push_back({tile::For{"rank_item", plan.items, Level::unroll, within(row, within(rank, std::move(results)))}});
    return std::move(sort.launch());
}

/// A block finds what is among the first of its row, and sorts that.
tile::Launch sort_first_by_blocks(const SortStage &stage, const GpuFacts &facts) {
    const SortPlan &plan = stage.plan;
    constexpr int ahead = 8;  // loads under way
    const std::int64_t count = stage.count.value(), room = room_for_first(count);
    const tile::Axis place{"place",
                           stage.length,
                           {{"place_step", ceil_div(stage.length, ahead * plan.threads), Level::loop, ahead * plan.threads, 1},
                            {"place_item", ahead, Level::unroll, plan.threads, 1},
                            {"place_thread", plan.threads, Level::thread, 1, 1}}};
    SortLaunch sort(stage, "", {row_of_block(stage.rows), place, walked_by("rank", stage.count, plan.threads)}, stage.rows);
    const Expr row = tile::variable("row"), at = tile::variable("place");
    const bool in_shared = keeps_row(plan, stage.longest, count, facts);
    const tile::Buffer keys = in_shared ? sort.add(tile::Memory::shared, "keys", plan.key, stage.longest)
                                        : sort.values().use(stage.storage.scratch(sort.name("keys"), plan.key, {stage.rows, stage.length}));
    const auto key_place = [&](const Expr &i) { return in_shared ? std::vector<Expr>{i} : std::vector<Expr>{row, i}; };
    const tile::Buffer first = sort.add(tile::Memory::shared, "first", plan.key, room);
    const tile::Buffer places = sort.add(tile::Memory::shared, "places", Halide::Int(32), room);
    sort.add(tile::Memory::shared, "heads", plan.key, plan.threads);
    sort.add(tile::Memory::shared, "counts", Halide::Int(32), 2048);
    sort.add(tile::Memory::shared, "scratch", Halide::Int(32), 32);

    tile::Block &body = sort.launch().body;
    tile::Statement items{
        tile::For{"place_item", ahead, Level::unroll, within(place, {{tile::Store{keys.name, key_place(at), {sort.key_at(row, at)}}}})}};
    tile::For steps{"place_step", place.leaves[0].extent, Level::loop, {std::move(items)}};
    steps.disjoint = true;
    body.push_back({std::move(steps)});
    body.push_back({tile::Barrier{}});
    tile::Statement select =
        sort.call("select_first", {std::to_string(plan.threads), std::to_string(room)},
                  {buffer(keys.name, in_shared ? std::vector<Expr>() : key_place(Expr(0))), scalar(to_halide(stage.length)),
                   scalar(Expr(static_cast<int>(count))), buffer(first.name), buffer(places.name), buffer(sort.name("heads")),
                   buffer(sort.name("counts")), buffer(sort.name("scratch"))},
                  {keys.name}, {first.name, places.name});
    select.as<tile::Invoke>()->template_type = plan.key;
    body.push_back(std::move(select));
    body.push_back(store_row(sort, first, places));
    return std::move(sort.launch());
}

}  // namespace

std::vector<tile::Launch> lower_sort(const Kernel &kernel, const Placement &placement, int nest_index, Storage &storage,
                                     const ScheduledKernel &schedule, const GpuFacts &facts) {
    const SortStage stage(kernel, placement, nest_index, storage, schedule, facts);
    if (stage.count == Extent(0)) {
        return {};
    }
    switch (stage.plan.sorters) {
        case SortPlan::Sorters::warp:
            return {sort_by_warps(stage)};
        case SortPlan::Sorters::block:
            return {stage.plan.preselects ? sort_first_by_blocks(stage, facts) : sort_by_blocks(stage)};
        case SortPlan::Sorters::grid:
            return sort_by_passes(stage);
    }
    return {};
}

}  // namespace tilewright
