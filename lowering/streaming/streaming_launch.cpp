#include "lowering/streaming/streaming_launch.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/nest.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

std::int64_t ceil_of(std::int64_t x, std::int64_t divisor) { return (x + divisor - 1) / divisor; }
std::int64_t round_up(std::int64_t x, std::int64_t multiple) { return ceil_of(x, multiple) * multiple; }

}  // namespace

StreamingLaunch::StreamingLaunch(const Kernel &kernel, const StreamingForm &form, Storage &storage, const ScheduledKernel &schedule,
                                 const GpuFacts &facts, Role role)
    : algorithm(kernel.algorithm),
      form(form),
      storage(storage),
      second(algorithm.stages[form.second]),
      role(role),
      schedule(schedule),
      facts(facts) {
    launch.name = identifier(kernel.name + "_" + second.name() + (role == Role::merges ? "_merge" : ""));
    read_schedule();
    lay_out();
}

void StreamingLaunch::refuse(const std::string &cause, const std::string &repair) const {
    schedule_error(scheduled().find_flag("stream")->directive.location, second.name(), cause, repair);
}

const ScheduledStage &StreamingLaunch::scheduled() const { return *schedule.find(second.name()); }

int StreamingLaunch::number(const char *flag, int argument, int otherwise) const {
    const ScheduleFlag *found = scheduled().find_flag(flag);
    return found ? static_cast<int>(found->number(argument)) : otherwise;
}

void StreamingLaunch::read_schedule() {
    warpgroups = number("warpgroups", 0, 2);
    stages = number("pipeline", 1, 2);
    raster = number("raster", 0, 1);
    blocks_per_multiprocessor = number("launch_bounds", 1, 1);
    takes_turns = scheduled().find_flag("take_turns") != nullptr && warpgroups > 1;
    hides_exponentials = scheduled().find_flag("hide_exponentials") != nullptr;
    persistent = scheduled().find_flag("persistent") != nullptr;
    columns = static_cast<int>(round_up(second.extents[form.column].value(), group_columns));
    depth_chunks = static_cast<int>(round_up(form.depth_extent.value(), chunk) / chunk);
    column_chunks = static_cast<int>(round_up(columns, chunk) / chunk);
    parts = number("split_blocks", 1, 1);
    in_cluster = scheduled().find_flag("cluster") != nullptr;
    const int axis = scheduled().find_axis(scheduled().find_flag("stream")->word(0));
    const LoopAxis *streamed = axis >= 0 ? &scheduled().axes[axis] : nullptr;
    if (!streamed || streamed->origin != LoopAxis::Origin::split_outer || !streamed->reduction) {
        refuse("it streams along no outer part of its reduction", fmt::format("split {} and stream along the outer loop", form.streamed));
    }
    keys = static_cast<int>(streamed->factor);
    rows = chunk * warpgroups;
    if (keys % 16 != 0 || keys > 256) {
        refuse(fmt::format("a step of {} is no width that the matrix unit has", keys), "split by a multiple of 16 up to 256");
    }
    if (warpgroups < 1 || warpgroups > 3) {
        refuse(fmt::format("{} warpgroups do not share a block", warpgroups), "give 1, 2 or 3");
    }
    if (form.group > 0 && warpgroups > 1) {
        refuse(fmt::format("its {} rows of a group fill no more than one warpgroup", form.group), "give 1 warpgroup");
    }
    check_parts();
    const ScheduleFlag *unit = scheduled().find_flag("tensor_core");
    if (!unit || unit->number(0) != chunk || unit->number(1) != columns || unit->number(2) != 16) {
        refuse("it is not multiplied by the matrix unit", fmt::format("add tensor_core({}, {}, 16)", chunk, columns));
    }
    const ScheduledStage *first = schedule.find(algorithm.stages[form.first].name());
    const ScheduleFlag *first_unit = first->find_flag("tensor_core");
    if (!first_unit || first_unit->number(0) != chunk || first_unit->number(1) != keys || first_unit->number(2) != 16) {
        schedule_error(first->at_location, first->name, "it feeds a streamed product and is not multiplied by the matrix unit",
                       fmt::format("add compute_at({}, {}) and tensor_core({}, {}, 16)", second.name(), streamed->name, chunk, keys));
    }
}

void StreamingLaunch::check_parts() const {
    if (in_cluster && (number("cluster", 0, 1) * number("cluster", 1, 1) != parts || parts > facts.largest_cluster)) {
        refuse("a cluster's blocks share the keys of one tile of rows",
               fmt::format("write split_blocks and cluster(n, 1) of one n together, at most {}", facts.largest_cluster));
    }
    if (parts == 1) {
        return;
    }
    const std::int64_t length = form.streamed_extent.is_constant() ? form.streamed_extent.value() : 0, tiles = ceil_of(length, keys);
    if (persistent || (parts - 1) * ceil_of(tiles, parts) >= tiles) {
        refuse(fmt::format("{} blocks cannot share its {} keys, {} at a time", parts, form.streamed_extent.to_string(), keys),
               "give fewer blocks, a length that is known, and no persistent()");
    }
}

void StreamingLaunch::lay_out_axes() {
    row_tiles = form.group > 0 ? Extent(1) : ceil_div(second.extents[form.row], rows);
    key_tiles = ceil_div(form.streamed_extent, keys);
    for (int i = 0; i < static_cast<int>(form.axes.size()); ++i) {
        tile::Axis axis{axis_name(i), second.extents[i], {}};
        if (i == form.row) {
            axis.leaves = {form.group > 0 ? tile::Leaf{axis_name(i) + "_tile", plane_extent(i), Level::loop, form.group, 1}
                                          : tile::Leaf{"m_tile", row_tiles, Level::loop, rows, 1},
                           {"m_warpgroup", warpgroups, Level::thread, chunk, 128},
                           {"m_warp", 4, Level::thread, 16, 32},
                           {"m_half", 2, Level::unroll, 8, 1},
                           {"m_row", 8, Level::thread, 1, 4}};
        } else if (i == form.column) {
            axis.leaves = {{"n_group", columns / group_columns, Level::unroll, group_columns, 1},
                           {"n_block", 4, Level::thread, 8, 1},
                           {"n_lane", 8, Level::vector, 1, 1}};
        } else {
            axis.leaves = {{axis_name(i) + "_tile", axis.extent, Level::loop, 1, 1}};
        }
        if (i != form.column && (i != form.row || form.group > 0)) {
            planes = planes * plane_extent(i);
            batch.push_back(i);
        }
        launch.axes.push_back(axis);
    }
    // Planes that read the same part of a tensor stand next to each other: the axis that fewest operands vary along changes fastest.
    std::stable_sort(batch.begin(), batch.end(), [&](int a, int b) { return reads_along(a) > reads_along(b); });
    launch.axes.push_back({form.streamed,
                           form.streamed_extent,
                           {{"s_tile", key_tiles, Level::loop, keys, 1},
                            {"s_block", keys / 8, Level::unroll, 8, 1},
                            {"s_pair", 4, Level::thread, 2, 1},
                            {"s_lane", 2, Level::vector, 1, 1}}});
}

void StreamingLaunch::lay_out() {
    lay_out_axes();
    for (const auto &[name, range] : algorithm.symbols) {
        ranges[name] = range;
    }
    for (const tile::Axis &axis : launch.axes) {
        ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(algorithm.symbols).max - 1, 0)};
    }
    launch.threads = (warpgroups + (role == Role::multiplies)) * 128;
    pieces = row_tiles * planes * Extent(role == Role::multiplies ? parts : 1);
    launch.blocks = persistent ? min(pieces, Extent(facts.multiprocessors * blocks_per_multiprocessor)) : pieces;
    launch.min_blocks_per_multiprocessor = blocks_per_multiprocessor;
    launch.cluster = in_cluster ? parts : 1;
    if (role == Role::multiplies) {
        query = {"query", form.query, form.type, depth_chunks, chunk, rows};
        key = {"key", of_plane(form.key), form.type, depth_chunks, chunk, keys};
        value = {"value", of_plane(form.value), form.type, column_chunks, chunk, keys};
        add_tile(query, 1);
        add_tile(key, stages);
        add_tile(value, stages);
        add_registers("scores", Halide::Float(32), {keys / 8, 2, 2});
        add_registers("weights", Halide::UInt(32), {keys / 16, 4});
    }
    add_registers("sums", Halide::Float(32), {1, 1, columns / group_columns, 2, 8});
    for (const char *name : {"maximum", "total", "decay"}) {
        add_registers(name, Halide::Float(32), {2});
    }
}

/// How many tensors vary along the axis: those of the products and of the score function.
int StreamingLaunch::reads_along(int axis) const {
    int count = 0;
    const auto add = [&](const std::vector<Expr> &indices) {
        count += std::any_of(indices.begin(), indices.end(), [&](const Expr &index) { return mentions(index, axis_name(axis)); });
    };
    for (const StreamedOperand *operand : {&form.query, &form.key, &form.value}) {
        add(operand->indices);
    }
    visit_reads(form.score, [&](const hi::Call *call) {
        if (call->call_type == hi::Call::Image) {
            add(call->args);
        }
    });
    return count;
}

void StreamingLaunch::add_shared(const std::string &name, Halide::Type type, std::vector<Extent> extents) {
    tile::Buffer tile = tile::dense_buffer(name, {type}, tile::Memory::shared, std::move(extents));
    tile.alignment = tile.extents.size() == 1 ? 8 : atom;
    tile.ordered = true;
    launch.buffers.push_back(tile);
}

void StreamingLaunch::add_registers(const std::string &name, Halide::Type type, std::vector<Extent> extents) {
    launch.buffers.push_back(tile::dense_buffer(name, {type}, tile::Memory::registers, std::move(extents)));
}

void StreamingLaunch::add_tile(const StreamedTile &tile, int slots) {
    std::vector<Extent> extents{tile.chunks, tile.rows, tile.chunk_columns};
    if (tile.name != "query") {
        extents.insert(extents.begin(), slots);
    }
    add_shared(tile.name + "_tile", tile.type, std::move(extents));
    add_shared(tile.barriers(), Halide::UInt(64), {2 * slots});
    add_map(tile);
}

void StreamingLaunch::add_map(const StreamedTile &tile) {
    const TensorMeta &meta = algorithm.inputs[tile.operand.input].meta;
    tile::Buffer map;
    map.name = tile.name + "_map";
    map.types = {tile.type};
    map.memory = tile::Memory::descriptor;
    map.binding = tile::Buffer::Binding::input;
    map.index = tile.operand.input;
    map.map.dtype = from_halide(tile.type);
    for (int d : copied_dimensions(algorithm, tile.operand)) {
        map.map.sizes.push_back(meta.sizes[d]);
        if (d != tile.operand.inner) {
            map.map.byte_strides.push_back(meta.strides[d] * Extent(tile.type.bytes()));
        }
        map.map.box.push_back(d == tile.operand.inner ? tile.chunk_columns : d == tile.operand.outer ? tile.rows : 1);
    }
    map.map.swizzle_bytes = tile.swizzle;
    launch.buffers.push_back(map);
}

Expr StreamingLaunch::read_tensor(const hi::Call *op) {
    if (const Expr held = held_in_registers ? held_in_registers(op) : Expr(); held.defined()) {
        return held;
    }
    const tile::Buffer tensor = used(storage.input(op->name));
    std::vector<Expr> indices;
    for (const Expr &index : op->args) {
        indices.push_back(simplify_index(substitute_variables(bound(index), clamped), ranges));
    }
    return tile::read(tensor, indices);
}

tile::Buffer StreamingLaunch::used(tile::Buffer tensor) {
    for (const tile::Buffer *other = launch.find_buffer(tensor.name); other; other = launch.find_buffer(tensor.name)) {
        if (other->memory == tile::Memory::global && other->binding == tensor.binding && other->index == tensor.index) {
            return tensor;
        }
        tensor.name += "_";
    }
    launch.buffers.push_back(tensor);
    return tensor;
}

Expr StreamingLaunch::kept(const std::string &name, std::vector<Expr> indices) const {
    return tile::read(*launch.find_buffer(name), indices);
}

Expr StreamingLaunch::read_kept(const hi::Call *op) const {
    const Expr half = tile::variable("m_half");
    const int stage = stage_index(algorithm, op->name);
    if (stage == form.first) {
        return kept("scores", {tile::variable("s_block"), half, tile::variable("s_lane")});
    }
    if (stage == form.second) {
        return kept("sums", {0, 0, tile::variable("n_group"), half, tile::variable("n_lane")});
    }
    if (stage == form.maximum) {
        const Expr maximum = kept("maximum", {half});
        return form.scale == 1 ? maximum : maximum * static_cast<float>(form.scale);
    }
    return kept("total", {half});
}

/// Reads of tensors and of what the block keeps, in place of reads of the algorithm's.
class StreamingLaunch::Bind : public hi::IRGraphMutator {
public:
    explicit Bind(StreamingLaunch &lowering) : lowering_(lowering) {}

private:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        if (!is_read(op)) {
            return hi::IRGraphMutator::visit(op);
        }
        return op->call_type == hi::Call::Image ? lowering_.read_tensor(op) : lowering_.read_kept(op);
    }
    StreamingLaunch &lowering_;
};

Expr StreamingLaunch::bound(const Expr &e) { return Bind(*this).mutate(e); }

Expr StreamingLaunch::first_row() const {
    return form.group > 0 ? tile::variable(axis_name(form.row) + "_tile") * form.group : tile::variable("m_tile") * rows;
}

Expr StreamingLaunch::row_in_tile() const {
    return tile::variable("m_warpgroup") * chunk + tile::variable("m_warp") * 16 + tile::variable("m_half") * 8 + tile::variable("m_row");
}

Expr StreamingLaunch::row_exists() const {
    const std::string &row = axis_name(form.row);
    if (form.group > 0) {
        return row_in_tile() < form.group;
    }
    return launch.axes[form.row].exact() ? Expr() : tile::variable(row) < to_halide(second.extents[form.row]);
}

Extent StreamingLaunch::plane_extent(int axis) const {
    return axis == form.row ? floor_div(second.extents[axis], form.group) : second.extents[axis];
}

/// Its places at the first row of the block's group: the others read the same.
StreamedOperand StreamingLaunch::of_plane(StreamedOperand operand) const {
    if (form.group > 0) {
        for (Expr &index : operand.indices) {
            index = substitute_variables(index, {{axis_name(form.row), first_row()}});
        }
    }
    return operand;
}

std::map<std::string, ExprInterval> StreamingLaunch::rows_between(const Expr &first, int count) const {
    const Expr last = Halide::min(first + (count - 1), to_halide(second.extents[form.row]) - 1);
    return {{axis_name(form.row), {first, last}}};
}

int StreamingLaunch::consumer_registers() const {
    const int at_launch = std::min(facts.registers_per_multiprocessor / ((warpgroups + 1) * 128 * blocks_per_multiprocessor) / 8 * 8, 248);
    return std::min((at_launch * (warpgroups + 1) - producer_registers()) / warpgroups / 8 * 8, 240);
}

Expr StreamingLaunch::tile_at(const Expr &iteration) {
    return tile::variable("first_tile") + (tile::variable("tile_count") - 1 - iteration);
}

}  // namespace tilewright
