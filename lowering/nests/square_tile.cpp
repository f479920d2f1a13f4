#include "lowering/nests/square_tile.h"

#include <algorithm>
#include <numeric>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/block_tile.h"
#include "lowering/nests/merged_dimensions.h"
#include "lowering/nests/staged_reads.h"
#include "lowering/passes/wide_access.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

class SquareTile {
public:
    SquareTile(NestWork &work, const Stage &stage, const ScheduledStage &copy, const tile::Buffer &source,
               const std::vector<std::vector<Expr>> &places)
        : work_(work),
          copy_(copy),
          source_(source),
          around_(loops_around_tile(work.nest, work.stage(work.nest.anchor).name(), copy)),
          merged_(work.nest, source, places.front(), around_),
          elements_(widest_access / source.types[0].bytes()) {
        std::vector<std::vector<Expr>> merged;
        for (const std::vector<Expr> &place : places) {
            merged.push_back(merged_.merge(place));
        }
        const auto region = tile_region(work.nest, merged, around_);
        if (!region) {
            refuse(fmt::format("a block of '{}' does not read a box of '{}'", stage.name(), copy.copy_of));
        }
        region_ = *region;
        find_dimensions(merged.front());
        check_accesses();
        make_buffer(stage.name() + "_" + copy.copy_of + "_tile");
    }

    void fill() {
        const std::int64_t vectors = count() / elements_, threads = work_.nest.threads;
        if (vectors % threads != 0) {
            refuse(fmt::format("{} threads do not share {} accesses evenly", threads, vectors));
        }
        const std::int64_t steps = vectors / threads;
        const tile::Buffer kept = registers("_kept", {steps, elements_}), one = registers("_moved", {elements_});
        const std::string step = tile_.name + "_step", lane = tile_.name + "_lane";
        // All loads are under way before the first value is stored.
        tile::Block load = places(step, threads), store = load;
        load.push_back({tile::VectorLoad{
            kept.name, source_.name, merged_.split(from_), static_cast<int>(elements_), {tile::variable(step)}, inside_}});
        store.push_back(
            {tile::For{lane,
                       elements_,
                       Level::unroll,
                       {tile::Statement{tile::Store{
                           one.name, {tile::variable(lane)}, {tile::read(kept, {tile::variable(step), tile::variable(lane)})}}}}}});
        store.push_back({tile::VectorStore{one.name, tile_.name, to_, static_cast<int>(elements_)}});
        tile::Block all;
        for (tile::Block *body : {&load, &store}) {
            tile::For loop{step, steps, Level::unroll, std::move(*body)};
            loop.disjoint = true;
            all.push_back({std::move(loop)});
        }
        note_alignment(work_.launch, source_.name, widest_access);
        Piece piece;
        piece.name = tile_.name;
        piece.loops = around_;
        piece.keeps_per_iteration = false;
        piece.body = [all] { return all; };
        work_.piece_of[tile_.name] = work_.add_piece(piece);
    }

    /// What the tile holds of a place of the tensor.
    Expr read(const std::vector<Expr> &place) const {
        const std::vector<Expr> merged = merged_.merge(place);
        std::vector<Expr> within;
        for (std::size_t i = 0; i < merged.size(); ++i) {
            within.push_back(at_first_block(over_leaves(work_.nest, difference_of(merged[i], region_.origin[i], work_.nest.ranges))));
        }
        return tile::read(tile_, of_tile(within));
    }

private:
    [[noreturn]] void refuse(const std::string &cause) const {
        schedule_error(copy_.at_location, copy_.name, cause, "remove swizzle(), or the copy");
    }

    /// A distance from where the tile begins is the same in every block.
    Expr at_first_block(const Expr &distance) const {
        Substitution zeros;
        for (const tile::Axis &axis : work_.nest.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (leaf.level == Level::grid || around_.count(leaf.name)) {
                    zeros[leaf.name] = Expr(0);
                }
            }
        }
        return simplify_index(substitute_variables(distance, zeros), work_.nest.ranges);
    }

    std::int64_t count() const {
        return std::accumulate(region_.extents.begin(), region_.extents.end(), std::int64_t{1}, std::multiplies<>());
    }

    /// The tensor's fastest dimension, and the one that the lanes of the stage's vectors run along.
    void find_dimensions(const std::vector<Expr> &place) {
        std::string lane;
        for (const NestLoop &loop : work_.nest.loops) {
            const tile::Leaf &leaf = work_.nest.leaf(loop);
            if (leaf.level == Level::vector) {
                lane = leaf.name;
                lanes_ = leaf.extent.value();
            }
        }
        int fast = -1, across = -1;
        for (std::size_t i = 0; i < place.size(); ++i) {
            fast = merged_.stride(i) == Extent(1) ? static_cast<int>(i) : fast;
            across = !lane.empty() && mentions(over_leaves(work_.nest, place[i]), lane) ? static_cast<int>(i) : across;
        }
        if (fast < 0 || across < 0 || fast == across) {
            refuse("its reader is not vectorized along another dimension than the tensor's fastest");
        }
        fast_ = fast;
        across_ = across;
    }

    void check_accesses() const {
        const std::string cause = why_unaligned(source_, widest_access);
        const std::int64_t begins = divisor_of(region_.origin[fast_], launch_multiples(work_.launch));
        if (!cause.empty()) {
            refuse(cause);
        }
        if (begins % elements_ != 0 || region_.extents[fast_] % elements_ != 0 ||
            !(mod(merged_.extent(fast_), Extent(elements_)) == Extent(0)) || region_.extents[across_] % lanes_ != 0) {
            refuse(fmt::format("its rows do not begin and end at multiples of {} elements", elements_));
        }
    }

    /// The dimension of the lanes in two: behind each of their groups lies one access more, so that threads that read neighbouring groups
    /// meet different banks.
    void make_buffer(const std::string &name) {
        tile_.name = work_.unique(name);
        tile_.types = source_.types;
        tile_.memory = tile::Memory::shared;
        tile_.alignment = widest_access;
        const std::int64_t row = region_.extents[fast_], group = lanes_ * row + elements_;
        std::int64_t stride = group * (region_.extents[across_] / lanes_);
        for (std::size_t i = 0; i < region_.extents.size(); ++i) {
            if (i == across_) {
                tile_.extents.insert(tile_.extents.end(), {region_.extents[i] / lanes_, lanes_});
                tile_.strides.insert(tile_.strides.end(), {group, row});
            } else {
                tile_.extents.push_back(region_.extents[i]);
                tile_.strides.push_back(i == fast_ ? 1 : stride);
                stride *= i == fast_ ? 1 : region_.extents[i];
            }
        }
        work_.launch.buffers.push_back(tile_);
    }

    tile::Buffer registers(const std::string &suffix, const std::vector<Extent> &extents) {
        const tile::Buffer buffer =
            tile::dense_buffer(work_.unique(tile_.name + suffix) + ".vec", source_.types, tile::Memory::registers, extents);
        work_.launch.buffers.push_back(buffer);
        return buffer;
    }

    /// Lets of the place of a thread's access; sets from_, to_ and inside_.
    tile::Block places(const std::string &step, std::int64_t threads) {
        const std::string flat = tile_.name + "_flat";
        tile::Block lets{
            tile::Statement{tile::Let{flat, tile::variable(step) * static_cast<int>(threads) + tile::variable("thread.rank")}}};
        from_.assign(region_.extents.size(), Expr());
        std::vector<Expr> within(region_.extents.size());
        Expr rest = tile::variable(flat);
        VariableRanges ranges = work_.nest.ranges;
        for (const std::size_t i : from_fastest()) {
            const std::int64_t unit = i == fast_ ? elements_ : 1, extent = region_.extents[i] / unit;
            const std::string name = tile_.name + "_" + std::to_string(i);
            lets.push_back({tile::Let{name, extent == 1 ? Expr(0) : rest % static_cast<int>(extent)}});
            rest = extent == 1 ? rest : rest / static_cast<int>(extent);
            ranges[name] = {0, extent - 1};
            within[i] = unit == 1 ? tile::variable(name) : tile::variable(name) * static_cast<int>(unit);
            from_[i] = hi::is_const_zero(region_.origin[i]) ? within[i] : region_.origin[i] + within[i];
            require_inside(i, ranges);
        }
        to_ = of_tile(within);
        return lets;
    }
    void require_inside(std::size_t i, const VariableRanges &ranges) {
        const auto range = range_of(from_[i], ranges);
        const Extent extent = merged_.extent(i);
        if (!range || range->min < 0 || !extent.is_constant() || range->max >= extent.value()) {
            const Expr condition = from_[i] >= 0 && from_[i] < to_halide(extent);
            inside_ = inside_.defined() ? inside_ && condition : condition;
        }
    }

    /// Dimensions as neighbouring threads go through them.
    std::vector<std::size_t> from_fastest() const {
        std::vector<std::size_t> order{fast_, across_};
        for (std::size_t i = region_.extents.size(); i-- > 0;) {
            if (i != fast_ && i != across_) {
                order.push_back(i);
            }
        }
        return order;
    }

    std::vector<Expr> of_tile(const std::vector<Expr> &within) const {
        std::vector<Expr> place;
        for (std::size_t i = 0; i < within.size(); ++i) {
            if (i == across_) {
                const int lanes = static_cast<int>(lanes_);
                place.push_back(simplify_index(within[i] / lanes, work_.nest.ranges));
                place.push_back(simplify_index(within[i] % lanes, work_.nest.ranges));
            } else {
                place.push_back(within[i]);
            }
        }
        return place;
    }

    NestWork &work_;
    const ScheduledStage &copy_;
    const tile::Buffer &source_;
    const std::set<std::string> around_;
    const MergedDimensions merged_;
    const std::int64_t elements_;  ///< of an access
    std::int64_t lanes_ = 1;
    TileRegion region_;
    std::size_t fast_ = 0, across_ = 0;
    tile::Buffer tile_;
    std::vector<Expr> from_, to_;  ///< of an access: its place in the tensor, merged, and in the tile
    Expr inside_;
};

class ReadSquares : public hi::IRGraphMutator {
public:
    ReadSquares(const std::string &source, const SquareTile &tile) : source_(source), tile_(tile) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        return op->call_type == hi::Call::Halide && op->name == source_ ? tile_.read(op->args) : hi::IRGraphMutator::visit(op);
    }

private:
    const std::string &source_;
    const SquareTile &tile_;
};

}  // namespace

void stage_squares(NestWork &work, const Stage &stage, const ScheduledStage &copy, const tile::Buffer &source, std::vector<Expr> &terms) {
    const std::vector<std::vector<Expr>> places = places_read(terms, source.name);
    if (places.empty()) {
        schedule_error(copy.at_location, copy.name, fmt::format("'{}' does not read '{}'", stage.name(), copy.copy_of), "remove the copy");
    }
    SquareTile tile(work, stage, copy, source, places);
    tile.fill();
    ReadSquares read_squares(source.name, tile);
    for (Expr &term : terms) {
        term = read_squares.mutate(term);
    }
    work.staged.insert(copy.name);
}

}  // namespace tilewright
