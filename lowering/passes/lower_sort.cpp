#include <algorithm>

#include "dsl/algorithm/sort.h"
#include "dsl/error.h"
#include "lowering/passes/special_forms.h"
#include "lowering/passes/stage_values.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

tile::Buffer row_buffer(Storage &storage, const std::string &name, Halide::Type type, const Extent &rows, const Extent &length, bool shared) {
    if (!shared) {
        return storage.scratch(name, type, {rows, length});
    }
    tile::Buffer buffer;
    buffer.name = name;
    buffer.types = {type};
    buffer.memory = tile::Memory::shared;
    buffer.extents = {length};
    buffer.strides = {1};
    return buffer;
}

}  // namespace

std::vector<tile::Launch> lower_sort(const Kernel &kernel, const Placement &placement, int nest_index, Storage &storage, const ScheduledKernel &schedule,
                                     const GpuFacts &facts) {
    const int index = placement.nests[nest_index].anchor;
    const Stage &stage = kernel.algorithm.stages[index];
    const auto sort = match_sort(stage.func);
    internal_assert(sort.has_value(), "stage {} is no sort", stage.name());
    const SymbolRanges &symbols = kernel.algorithm.symbols;
    const Extent length = stage.extents.back();
    std::vector<Extent> leading(stage.extents.begin(), stage.extents.end() - 1);
    const Extent rows = product(leading);
    const std::int64_t longest = length.bounds(symbols).max;
    const Halide::Type type = stage.func.types()[0];
    const bool in_shared = longest <= facts.shared_per_block / (8 + type.bytes());
    int threads = 32;
    while (threads < 1024 && threads < longest / 2) {
        threads *= 2;
    }

    tile::Launch launch;
    launch.name = identifier(kernel.name + "_" + stage.name());
    launch.axes = {{"row", rows, {{"row_block", rows, Level::grid, 1, 1}}},
                   {"place", length, {{"place_step", ceil_div(length, threads), Level::loop, threads, 1}, {"place_thread", threads, Level::thread, 1, 1}}}};
    launch.blocks = rows;
    launch.threads = threads;
    Nest nest;
    nest.anchor = index;
    nest.axes = launch.axes;
    for (const auto &[name, range] : symbols) {
        nest.ranges[name] = range;
    }
    for (const tile::Axis &axis : launch.axes) {
        nest.ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(symbols).max - 1, 0)};
    }
    StageValues values(kernel, nest, placement, storage, launch);
    const Expr row = tile::variable("row"), place = tile::variable("place");
    std::vector<Expr> indices = unflatten(leading, row);
    indices.push_back(place);
    const TensorInput *input = sort->from_input ? kernel.algorithm.find_input(sort->input) : nullptr;
    const Expr source = input ? read(input->param, indices) : hi::Call::make(type, sort->input, indices, hi::Call::Halide);
    const Expr value = values.evaluate(source, {}, index);

    const Extent held = in_shared ? Extent(longest) : length;
    const tile::Buffer sorted = row_buffer(storage, identifier(stage.name()) + "_values", type, rows, held, in_shared);
    const tile::Buffer order = row_buffer(storage, identifier(stage.name()) + "_order", Halide::Int(64), rows, held, in_shared);
    launch.buffers.push_back(sorted);
    launch.buffers.push_back(order);
    const auto at = [&](const Expr &i) { return in_shared ? std::vector<Expr>{i} : std::vector<Expr>{row, i}; };
    const auto loop = [&](tile::Block body) {
        if (!launch.axes[1].exact()) {
            body = {tile::Statement{tile::If{place < to_halide(length), std::move(body)}}};
        }
        return tile::Statement{tile::For{"place_step", launch.axes[1].leaves[0].extent, Level::loop, std::move(body)}};
    };
    launch.body.push_back(loop({tile::Statement{tile::Store{sorted.name, at(place), {value}}},
                                tile::Statement{tile::Store{order.name, at(place), {hi::Cast::make(Halide::Int(64), place)}}}}));
    launch.body.push_back({tile::Barrier{}});
    tile::Invoke call;
    call.function = "sort_row";
    tile::Invoke::Argument first{sorted.name, in_shared ? std::vector<Expr>() : at(Expr(0)), Expr()};
    tile::Invoke::Argument second{order.name, in_shared ? std::vector<Expr>() : at(Expr(0)), Expr()};
    call.template_type = type;
    call.arguments = {first, second, {"", {}, hi::Cast::make(Halide::Int(64), to_halide(length))}, {"", {}, Expr(threads)},
                      {"", {}, hi::make_bool(sort->descending)}};
    call.reads = call.writes = {sorted.name, order.name};
    call.whole_block = true;
    launch.body.push_back({call});
    tile::Block stores;
    for (int i = 0; i < 2; ++i) {
        for (const tile::Buffer &target : storage.targets(index, i)) {
            values.use(target);
            stores.push_back({tile::Store{target.name, indices, {tile::read(i == 0 ? sorted : order, at(place))}}});
        }
    }
    launch.body.push_back(loop(stores));
    return {launch};
}

}  // namespace tilewright
