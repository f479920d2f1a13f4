#include "lowering/nests/block_tile.h"

#include <algorithm>
#include <numeric>

#include "dsl/algorithm/expression.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

bool is_around(const tile::Leaf &leaf, const std::set<std::string> &around) {
    return leaf.level == Level::grid || around.count(leaf.name) > 0;
}

/// Axes as sums of their leaves: those that vary within a tile, or those around it.
Substitution axes_of_leaves(const Nest &nest, const std::set<std::string> &around, bool inside) {
    Substitution result;
    for (const tile::Axis &axis : nest.axes) {
        Expr sum = 0;
        for (const tile::Leaf &leaf : axis.leaves) {
            if (!(leaf.extent == Extent(1)) && (inside || is_around(leaf, around))) {
                const Expr part = leaf.stride == Extent(1) ? tile::variable(leaf.name) : tile::variable(leaf.name) * to_halide(leaf.stride);
                sum = hi::is_const_zero(sum) ? part : sum + part;
            }
        }
        result[axis.name] = sum;
    }
    return result;
}

/// A place as its value where all loops of the tile begin, and how far it goes from there.
struct Span {
    Expr origin;
    SymbolRange range;
};

std::optional<Span> span_of(const Nest &nest, const Expr &place, const std::set<std::string> &around) {
    const Expr whole = substitute_variables(place, axes_of_leaves(nest, around, true));
    Substitution begin = axes_of_leaves(nest, around, false);
    for (const tile::Axis &axis : nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (!is_around(leaf, around)) {
                begin[leaf.name] = Expr(0);
            }
        }
    }
    const Expr origin = simplify_index(substitute_variables(place, begin), nest.ranges);
    const Expr distance = difference_of(whole, origin, nest.ranges);
    for (const std::string &name : variables_of(distance)) {
        const bool varies = std::any_of(nest.axes.begin(), nest.axes.end(), [&](const tile::Axis &axis) {
            return std::any_of(axis.leaves.begin(), axis.leaves.end(),
                               [&](const tile::Leaf &leaf) { return leaf.name == name && !is_around(leaf, around); });
        });
        if (!varies) {
            return std::nullopt;
        }
    }
    const auto range = contains_read(distance) ? std::nullopt : range_of(distance, nest.ranges);
    return range ? std::optional(Span{origin, *range}) : std::nullopt;
}

}  // namespace

Expr over_leaves(const Nest &nest, const Expr &e) {
    return simplify_index(substitute_variables(e, axes_of_leaves(nest, {}, true)), nest.ranges);
}

std::set<std::string> loops_around_tile(const Nest &nest, const std::string &anchor, const ScheduledStage &tile) {
    std::set<std::string> around;
    for (const NestLoop &loop : nest.loops) {
        const tile::Leaf &leaf = nest.leaf(loop);
        const std::string prefix = tile.at_stage == anchor ? "" : tile.at_stage + "_";
        const bool is_place = leaf.name == prefix + tile.at_axis || leaf.name == prefix + tile.at_axis + "_i";
        if (is_place && leaf.level == tile::Level::loop) {
            around.insert(leaf.name);
            return around;
        }
        if (leaf.level == tile::Level::loop) {
            around.insert(leaf.name);
        }
    }
    return {};  // a loop of blocks: outside of all others
}

std::optional<TileRegion> tile_region(const Nest &nest, const std::vector<std::vector<Expr>> &places, const std::set<std::string> &around) {
    TileRegion region;
    for (std::size_t i = 0; i < places.front().size(); ++i) {
        std::optional<Span> all;
        for (const std::vector<Expr> &place : places) {
            const auto span = span_of(nest, place[i], around);
            if (!span) {
                return std::nullopt;
            }
            const Expr apart = all ? difference_of(span->origin, all->origin, nest.ranges) : Expr(0);
            const auto *shift = apart.as<hi::IntImm>();
            if (!shift) {
                return std::nullopt;
            }
            const SymbolRange moved{span->range.min + shift->value, span->range.max + shift->value};
            all = all ? Span{all->origin, {std::min(all->range.min, moved.min), std::max(all->range.max, moved.max)}}
                      : Span{span->origin, moved};
        }
        region.origin.push_back(simplify_index(all->origin + static_cast<int>(all->range.min), nest.ranges));
        region.extents.push_back(all->range.max - all->range.min + 1);
    }
    return region;
}

tile::Buffer tile_buffer(NestWork &work, const std::string &name, Halide::Type type, const TileRegion &region,
                         const std::vector<Expr> &place, int filled_along) {
    tile::Buffer tile;
    tile.name = work.unique(name);
    tile.types = {type};
    tile.memory = tile::Memory::shared;
    tile.alignment = 16;
    // The dimension along which the first threads of a warp read is the fastest.
    int fastest = static_cast<int>(region.extents.size()) - 1;
    std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < place.size(); ++i) {
        for (const std::string &variable : variables_of(place[i])) {
            const tile::Axis *axis = work.nest.find_axis(variable);
            for (const tile::Leaf &leaf : axis ? axis->leaves : std::vector<tile::Leaf>()) {
                if (leaf.level == Level::thread && leaf.extent.value() > 1 && leaf.unit_stride.value() < nearest) {
                    nearest = leaf.unit_stride.value();
                    fastest = static_cast<int>(i);
                }
            }
        }
    }
    for (std::int64_t extent : region.extents) {
        tile.extents.push_back(extent);
    }
    tile.strides.assign(region.extents.size(), 1);
    constexpr int bank_bytes = 4;
    const std::int64_t word = std::max(bank_bytes / type.bytes(), 1);
    std::int64_t stride = region.extents[fastest] + (filled_along == fastest ? 0 : word);
    for (int i = static_cast<int>(region.extents.size()) - 1; i >= 0; --i) {
        if (i != fastest) {
            tile.strides[i] = stride;
            stride *= region.extents[i];
        }
    }
    work.launch.buffers.push_back(tile);
    return tile;
}

namespace {

/// What the thread copies to the tile in one step.
struct FillStep {
    std::vector<Expr> place;
    Expr value;
};

/// `flat` counts the places in `order`, dimensions from the slowest to the fastest.
FillStep fill_step(const NestWork &work, const tile::Buffer &tile, const TileRegion &region, const std::vector<Extent> &extents,
                   const std::vector<int> &order, const Expr &flat, const std::function<Expr(const std::vector<Expr> &)> &value_at) {
    FillStep result;
    std::vector<Expr> source(region.extents.size());
    result.place.resize(region.extents.size());
    Expr rest = flat, inside;
    for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
        const int extent = static_cast<int>(region.extents[*dimension]);
        const bool is_slowest = std::next(dimension) == order.rend();
        const Expr place = result.place[*dimension] = extent == 1 ? Expr(0) : is_slowest ? rest : rest % extent;
        rest = is_slowest || extent == 1 ? rest : rest / extent;
        source[*dimension] = hi::is_const_zero(region.origin[*dimension]) ? place : region.origin[*dimension] + place;
        const std::string name = tile.name + "_" + std::to_string(*dimension);
        VariableRanges ranges = work.nest.ranges;
        ranges[name] = {0, extent - 1};
        const auto range = range_of(region.origin[*dimension] + tile::variable(name), ranges);
        const auto require = [&](const Expr &condition) { inside = inside.defined() ? inside && condition : condition; };
        if (!range || range->min < 0) {
            require(source[*dimension] >= 0);
        }
        if (!range || !extents[*dimension].is_constant() || range->max >= extents[*dimension].value()) {
            require(source[*dimension] < to_halide(extents[*dimension]));
        }
    }
    const Expr value = value_at(source);
    result.value = inside.defined() ? hi::Select::make(inside, value, hi::make_zero(value.type())) : value;
    return result;
}

}  // namespace

int fill_tile(NestWork &work, const tile::Buffer &tile, const TileRegion &region, const std::vector<Extent> &extents,
              const std::vector<int> &order, const std::set<std::string> &around,
              const std::function<Expr(const std::vector<Expr> &)> &value_at) {
    constexpr std::int64_t most_unrolled = 16;
    const std::int64_t total = std::accumulate(region.extents.begin(), region.extents.end(), std::int64_t{1}, std::multiplies<>());
    const std::int64_t threads = work.nest.threads, steps = (total + threads - 1) / threads;
    const std::string step = tile.name + "_step";
    const Expr flat = tile::variable(step) * static_cast<int>(threads) + tile::variable("thread.rank");
    const FillStep fill = fill_step(work, tile, region, extents, order, flat, value_at);
    const bool whole = total % threads == 0;
    const Expr is_inside = flat < static_cast<int>(total);
    const auto each_step = [&](tile::Store store, bool is_guarded) {
        tile::Block body = guarded(is_guarded ? std::vector<Expr>{is_inside} : std::vector<Expr>(), {tile::Statement{std::move(store)}});
        tile::For loop{step, steps, steps <= most_unrolled ? Level::unroll : Level::loop, std::move(body)};
        loop.disjoint = true;
        return tile::Statement{std::move(loop)};
    };
    tile::Block all;
    if (steps == 1 || steps > most_unrolled) {
        all = {each_step({tile.name, fill.place, {fill.value}}, !whole)};
    } else {  // all loads are under way before the first value is stored
        const tile::Buffer kept = tile::dense_buffer(work.unique(tile.name + "_kept"), tile.types, tile::Memory::registers, {steps});
        work.launch.buffers.push_back(kept);
        const Expr value = whole ? fill.value : hi::Select::make(is_inside, fill.value, hi::make_zero(fill.value.type()));
        all = {each_step({kept.name, {tile::variable(step)}, {value}}, false),
               each_step({tile.name, fill.place, {tile::read(kept, {tile::variable(step)})}}, !whole)};
    }
    Piece piece;
    piece.name = tile.name;
    piece.loops = around;
    piece.needs = work.needs_of({fill.value});
    piece.keeps_per_iteration = false;
    piece.body = [all] { return all; };
    return work.piece_of[tile.name] = work.add_piece(piece);
}

}  // namespace tilewright
