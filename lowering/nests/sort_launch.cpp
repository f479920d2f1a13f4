#include "lowering/nests/sort_launch.h"

#include <algorithm>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

SortStage::SortStage(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, const ScheduledKernel &schedule,
                     const GpuFacts &facts)
    : kernel(kernel), placement(placement), storage(storage), index(placement.nests[nest].anchor) {
    const auto matched = match_sort(stage().func);
    internal_assert(matched.has_value(), "stage {} is no sort", stage().name());
    sort = *matched;
    plan = sort_plan(kernel.algorithm, stage(), schedule.find(stage().name()), facts);
    leading.assign(stage().extents.begin(), stage().extents.end() - 1);
    rows = product(leading);
    length = row_length(kernel.algorithm, stage());
    count = stage().extents.back();
    longest = longest_row(kernel.algorithm, stage());
}

SortLaunch::SortLaunch(const SortStage &sort, const std::string &suffix, std::vector<tile::Axis> axes, Extent blocks)
    : sort_(sort), launch_(), nest_(), values_(sort.kernel, nest_, sort.placement, sort.storage, launch_) {
    launch_.name = identifier(sort.kernel.name + "_" + sort.stage().name() + suffix);
    launch_.axes = std::move(axes);
    launch_.blocks = std::move(blocks);
    launch_.threads = sort.plan.threads;
    launch_.min_blocks_per_multiprocessor = sort.plan.min_blocks;
    nest_ = nest();
}

Nest SortLaunch::nest() const {
    const SymbolRanges &symbols = sort_.kernel.algorithm.symbols;
    Nest nest;
    nest.anchor = sort_.index;
    nest.axes = launch_.axes;
    for (const auto &[name, range] : symbols) {
        nest.ranges[name] = range;
    }
    for (const tile::Axis &axis : launch_.axes) {
        nest.ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(symbols).max - 1, 0)};
    }
    nest.ranges["from"] = {0, sort_.longest - 1};
    return nest;
}

std::string SortLaunch::name(const std::string &part) const { return identifier(sort_.stage().name()) + "_" + part; }

Expr SortLaunch::value_at(const Expr &row, const Expr &place) {
    std::vector<Expr> indices = unflatten(sort_.leading, row);
    indices.push_back(place);
    const TensorInput *input = sort_.sort.from_input ? sort_.kernel.algorithm.find_input(sort_.sort.input) : nullptr;
    const Expr source = input ? read(input->param, indices) : hi::Call::make(sort_.type(), sort_.sort.input, indices, hi::Call::Halide);
    return values_.evaluate(source, {}, sort_.index);
}

Expr SortLaunch::key_at(const Expr &row, const Expr &place) {
    return math::call(sort_.plan.key, "sort_key", {value_at(row, place), hi::make_bool(sort_.sort.descending)});
}

Expr SortLaunch::greatest_key() const {
    const int bits = sort_.plan.key.bits();
    return hi::UIntImm::make(sort_.plan.key, bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1);
}

tile::Block SortLaunch::store_result(const Expr &row, const Expr &rank, const Expr &key, const std::string &place) {
    std::vector<Expr> indices = unflatten(sort_.leading, row);
    indices.push_back(rank);
    const Expr descending = hi::make_bool(sort_.sort.descending), from = tile::variable(place);
    tile::Block stores, again;
    for (const tile::Buffer &target : sort_.storage.targets(sort_.index, 0)) {
        values_.use(target);
        stores.push_back({tile::Store{target.name, indices, {math::call(sort_.type(), "sorted_value", {key, descending})}}});
        again.push_back({tile::Store{target.name, indices, {value_at(row, from)}}});
    }
    if (sort_.type().is_float() && !again.empty()) {
        stores.push_back({tile::If{math::call(Halide::Bool(), "is_shared_key", {key, descending}), again}});
    }
    for (const tile::Buffer &target : sort_.storage.targets(sort_.index, 1)) {
        values_.use(target);
        stores.push_back({tile::Store{target.name, indices, {hi::Cast::make(Halide::Int(64), from)}}});
    }
    return stores;
}

tile::Statement SortLaunch::hold(const Expr &row) { return hold_values(key_at(row, tile::variable("place")), tile::variable("place")); }

tile::Statement SortLaunch::hold(const Expr &row, const tile::Buffer &keys, const tile::Buffer &places) {
    values_.use(keys);
    values_.use(places);
    const Expr place = tile::variable("place");
    return hold_values(tile::read(keys, {row, place}), tile::read(places, {row, place}));
}

tile::Statement SortLaunch::hold_values(const Expr &loaded_key, const Expr &loaded_place) {
    const tile::Buffer key = add(tile::Memory::registers, "key", sort_.plan.key, sort_.plan.items);
    const tile::Buffer place = add(tile::Memory::registers, "place", Halide::Int(32), sort_.plan.items);
    const Expr item = tile::variable("place_item");
    tile::Block body{{tile::Store{key.name, {item}, {greatest_key()}}}, {tile::Store{place.name, {item}, {tile::variable("place")}}}};
    const tile::Axis &axis = *std::find_if(launch_.axes.begin(), launch_.axes.end(), [](const tile::Axis &a) { return a.name == "place"; });
    tile::Block stores{{tile::Store{key.name, {item}, {loaded_key}}}};
    if (as_variable(loaded_place) != "place") {
        stores.push_back({tile::Store{place.name, {item}, {loaded_place}}});
    }
    tile::Block load = within(axis, std::move(stores));
    body.insert(body.end(), load.begin(), load.end());
    return {tile::For{"place_item", sort_.plan.items, Level::unroll, std::move(body)}};
}

const tile::Buffer &SortLaunch::add(tile::Memory memory, const std::string &part, Halide::Type type, std::int64_t elements) {
    return values_.use(tile::dense_buffer(name(part), {type}, memory, {elements}));
}

tile::Statement SortLaunch::call(const std::string &function, std::vector<std::string> templates,
                                 std::vector<tile::Invoke::Argument> arguments, std::vector<std::string> reads,
                                 std::vector<std::string> writes) {
    tile::Invoke invoke;
    invoke.function = function;
    invoke.template_arguments = std::move(templates);
    invoke.arguments = std::move(arguments);
    invoke.reads = std::move(reads);
    invoke.writes = std::move(writes);
    invoke.whole_block = true;
    return {invoke};
}

tile::Axis walked_by(const std::string &name, const Extent &extent, int threads) {
    return {name,
            extent,
            {{name + "_step", ceil_div(extent, threads), Level::loop, threads, 1}, {name + "_thread", threads, Level::thread, 1, 1}}};
}

std::vector<tile::Leaf> held_by_warps(const SortPlan &plan) {
    return {{"place_warp", plan.warps(), Level::thread, 32 * plan.items, 32},
            {"place_item", plan.items, Level::unroll, 32, 1},
            {"place_lane", 32, Level::thread, 1, 1}};
}

tile::Block within(const tile::Axis &axis, tile::Block body) {
    if (axis.exact()) {
        return body;
    }
    return {{tile::If{tile::variable(axis.name) < to_halide(axis.extent), std::move(body)}}};
}

tile::Statement walk(const tile::Axis &axis, tile::Block body) {
    return {tile::For{axis.name + "_step", axis.leaves[0].extent, Level::loop, within(axis, std::move(body))}};
}

}  // namespace tilewright
