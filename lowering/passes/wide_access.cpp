#include "lowering/passes/wide_access.h"

#include <algorithm>
#include <fmt/format.h>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/first_lane.h"
#include "lowering/tile_ir/dense_buffer.h"
#include "lowering/tile_ir/inward_tail.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {

using Halide::Expr;
using namespace tile;

bool is_inside(const Launch &launch, const VariableRanges &ranges, const Buffer &buffer, const std::vector<Expr> &indices) {
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::string name = as_variable(indices[i]);
        const bool whole = std::any_of(launch.axes.begin(), launch.axes.end(),
                                       [&](const Axis &a) { return a.name == name && a.extent == buffer.extents[i]; });
        if (whole) {
            continue;
        }
        const auto range = range_of(indices[i], ranges);
        if (!range || range->min < 0 || !buffer.extents[i].is_constant() || range->max >= buffer.extents[i].value()) {
            return false;
        }
    }
    return true;
}

namespace {

/// Axes of which some loop is named, as sums of their loops.
Substitution loops_of_axes(const Launch &launch, const std::vector<std::string> &loops) {
    Substitution sums;
    for (const Axis &axis : launch.axes) {
        const bool named = std::any_of(axis.leaves.begin(), axis.leaves.end(),
                                       [&](const Leaf &leaf) { return std::find(loops.begin(), loops.end(), leaf.name) != loops.end(); });
        if (named && !axis.shift.defined()) {
            sums[axis.name] = sum_of_leaves(axis);
        }
    }
    return sums;
}

}  // namespace

std::string WideAccess::find_first(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop, int lanes, Expr &first) const {
    const Axis *axis = axis_stepped_by(launch_, loop);
    if (!axis || buffer.types.size() > 1 || (lanes & (lanes - 1)) != 0) {
        return fmt::format("the vector {} has {} lanes: no power of two", loop.variable, lanes);
    }
    if (!loop.whole && !moves_inwards(*axis) && (axis->shift.defined() || !(mod(axis->extent, loop.extent) == Extent(0)))) {
        return fmt::format("the extent {} of {} is no multiple of {}", axis->extent.to_string(), axis->name, lanes);
    }
    if (!begins_at_multiples(*axis, loop)) {
        return fmt::format("the vectors of {} do not begin at multiples of {}", axis->name, lanes);
    }
    // Each index as (lanes * q + v); the flat offset must be its value at v = 0, plus v.
    const Expr lane = tile::variable("lane.v"), group = tile::variable("lane.q");
    Expr flat = to_halide(buffer.offset);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (contains_read(indices[i]) && mentions(indices[i], axis->name)) {
            return fmt::format("where dimension {} is read depends on data", i);
        }
        if (!(buffer.strides[i] == Extent(0))) {
            flat = flat + (buffer.strides[i] == Extent(1) ? indices[i] : indices[i] * to_halide(buffer.strides[i]));
        }
    }
    VariableRanges ranges = ranges_;
    ranges["lane.v"] = {0, lanes - 1};
    ranges["lane.q"] = {0, (axis->extent.bounds(symbols_).max + lanes - 1) / lanes};
    const Expr start = axis->shift.defined() ? group * lanes - axis->shift : group * lanes;
    if (axis->shift.defined()) {
        flat = substitute_variables(flat, loops_of_axes(launch_, variables_of(axis->shift)));
    }
    if (!axis->shift.defined()) {
        flat = at_first_lane(flat, {axis->name, loop.variable, lanes}, true);
    }
    flat = simplify_index(substitute_variables(flat, {{axis->name, start + lane}, {axis->name + ".first", start}, {loop.variable, lane}}),
                          ranges);
    if (!steps_by_one(flat, "lane.v", lanes, ranges)) {
        return fmt::format("neighbours along {} are no neighbours in memory", axis->name);
    }
    first = simplify_index(substitute_variables(flat, {{"lane.v", Expr(0)}}), ranges);
    return "";
}

std::string WideAccess::why_apart(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop, int lanes) const {
    Expr first;
    return find_first(buffer, indices, loop, lanes, first);
}

std::string WideAccess::why_narrow(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop, int lanes) const {
    Expr first;
    if (const std::string reason = find_first(buffer, indices, loop, lanes, first); !reason.empty()) {
        return reason;
    }
    const bool is_shifted = axis_stepped_by(launch_, loop)->shift.defined();
    const std::int64_t bytes = access_bytes(buffer, lanes), unit = bytes / static_cast<std::int64_t>(buffer.types[0].bytes());
    const std::map<std::string, std::int64_t> multiples = launch_multiples(launch_);
    const bool begins_aligned = mod(buffer.address_offset, Extent(unit)) == Extent(0);
    if (begins_aligned && (is_shifted ? is_multiple_of(first, unit, multiples) : divisor_of(first, multiples) % unit == 0)) {
        return "";
    }
    const std::string reason = why_unaligned(buffer, bytes);
    return reason.empty() ? fmt::format("vectors begin between multiples of {} bytes", bytes) : reason;
}

std::int64_t access_bytes(const Buffer &buffer, int lanes) {
    return std::min<std::int64_t>(static_cast<std::int64_t>(buffer.types[0].bytes()) * lanes, widest_access);
}

std::string why_unaligned(const Buffer &buffer, std::int64_t bytes) {
    const auto size = static_cast<std::int64_t>(buffer.types[0].bytes());
    const Extent unit(std::max<std::int64_t>(bytes / size, 1));
    if (!(mod(buffer.address_offset, unit) == Extent(0))) {
        return fmt::format("the tensor begins {} elements behind a multiple of {} bytes", buffer.address_offset.to_string(), bytes);
    }
    for (std::size_t i = 0; i < buffer.strides.size(); ++i) {
        const Extent &stride = buffer.strides[i], rest = mod(stride, unit);
        if (stride == Extent(1) || buffer.extents[i] == Extent(1) || rest == Extent(0)) {
            continue;
        }
        return rest.is_constant()
                   ? fmt::format("stride {} of dimension {} is {} modulo {} bytes", stride.to_string(), i, rest.value() * size, bytes)
                   : fmt::format("stride {} of dimension {} may be no multiple of {} bytes", stride.to_string(), i, bytes);
    }
    return "";
}

bool begins_at_multiples(const Axis &axis, const For &loop) { return multiple_of_axis(axis, loop.variable) % loop.extent.value() == 0; }

bool is_written(const Block &block, const std::string &buffer) {
    bool written = false;
    visit_statements(block, [&](const Statement &s) {
        const auto list = written_buffers(s);
        written = written || std::find(list.begin(), list.end(), buffer) != list.end();
    });
    return written;
}

Buffer add_vector_registers(Launch &launch, const Buffer &of, int lanes) {
    std::string base = of.name;
    for (int i = 2; launch.find_buffer(base + ".vec"); ++i) {
        base = of.name + "_" + std::to_string(i);
    }
    Buffer buffer = dense_buffer(base + ".vec", of.types, Memory::registers, {lanes});
    launch.buffers.push_back(buffer);
    return buffer;
}

void note_alignment(Launch &launch, const std::string &buffer, std::int64_t bytes) {
    Buffer *used = launch.find_buffer(buffer);
    used->alignment = std::max(used->alignment, bytes);
}

}  // namespace tilewright
