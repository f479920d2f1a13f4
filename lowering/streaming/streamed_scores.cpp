#include "lowering/streaming/streamed_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "lowering/nests/invoke.h"
#include "lowering/passes/append.h"
#include "lowering/passes/narrow_comparisons.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

tile::Block over_scores(tile::Block body) {
    body = {{tile::For{"s_lane", 2, Level::vector, std::move(body)}}};
    body = {{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
    return body;
}

/// A product and a sum round once.
class JoinedSums : public hi::IRGraphMutator {
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Add *op) override {
        const auto *left = op->a.as<hi::Mul>(), *right = op->b.as<hi::Mul>(), *product = left ? left : right;
        if (!product || !(op->type == Halide::Float(32))) {
            return hi::IRGraphMutator::visit(op);
        }
        return math::call(op->type, "fma", {mutate(product->a), mutate(product->b), mutate(left ? op->b : op->a)});
    }
};

Expr negative_infinity() { return Expr(-std::numeric_limits<float>::infinity()); }
/// A primitive: simplification takes every axis to be inside its extent.
Expr nearest(const std::string &axis, const Extent &extent) {
    return math::call(Halide::Int(32), "minimum", {tile::variable(axis), to_halide(extent) - 1});
}
bool reads_along(const hi::Call *call, const std::string &axis) {
    return std::any_of(call->args.begin(), call->args.end(), [&](const Expr &index) { return mentions(index, axis); });
}

}  // namespace

StreamedScores::StreamedScores(StreamingLaunch &stream, std::vector<Expr> masks) : stream_(stream), masks_(std::move(masks)) {
    split_masks();
    stream_.held_in_registers = [this](const hi::Call *call) {
        const std::string *held = held_name(call);
        return held ? stream_.kept(*held, {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")}) : Expr();
    };
}

tile::Block StreamedScores::score_loop(tile::Block body) const {
    return {{tile::For{"s_block", stream_.keys / 8, Level::unroll, over_scores(std::move(body))}}};
}

tile::Statement StreamedScores::store_score(const Expr &value) const {
    return {tile::Store{"scores", {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")}, {value}}};
}

Expr StreamedScores::old_score() const {
    return stream_.kept("scores", {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")});
}

/// Whether every place of the warpgroup's rows and the tile's columns passes the mask; undefined where that is not known.
Expr StreamedScores::passes_everywhere(const Expr &mask) {
    const Expr row = stream_.first_row() + tile::variable("m_warpgroup") * StreamingLaunch::chunk;
    const int rows = std::min(stream_.existing_rows(), StreamingLaunch::chunk);
    const PossibleRange fails = possible_range(!mask, stream_.form.streamed, stream_.rows_between(row, rows));
    const Expr first = Halide::cast<std::int64_t>(tile::variable("s_tile") * stream_.keys),
               last = first + Halide::cast<std::int64_t>(stream_.keys - 1);
    Expr passes;
    if (fails.first.defined()) {
        passes = last < stream_.bound(fails.first);
    }
    if (fails.last.defined()) {
        passes = passes.defined() ? passes || first > stream_.bound(fails.last) : first > stream_.bound(fails.last);
    }
    return passes;
}

/// Masks of places are applied where a step needs them; others, and what the score function computes, at every place.
void StreamedScores::split_masks() {
    changed_ = JoinedSums().mutate(stream_.form.score);
    for (const Expr &mask : masks_) {
        if (passes_everywhere(mask).defined()) {
            masks_by_range_.push_back(mask);
        } else {
            changed_ = Halide::select(mask, changed_, negative_infinity());
        }
    }
    const auto *call = changed_.as<hi::Call>();
    changes_ = !(call && call->name == stream_.algorithm.stages[stream_.form.first].name());
    find_held();
}

tile::Block StreamedScores::change() {
    tile::Block block;
    if (changes_) {
        append(block, at_every_place(changed_, [&] { return store_score(stream_.bound(changed_)); }));
    }
    if (!masks_by_range_.empty()) {
        Expr mask, pass;
        for (const Expr &m : masks_by_range_) {
            const Expr narrow = narrow_comparisons(stream_.bound(m), stream_.ranges), passes = passes_everywhere(m);
            mask = mask.defined() ? mask && narrow : narrow;
            pass = pass.defined() ? pass && passes : passes;
        }
        block.push_back({tile::If{!pass, score_loop({store_score(Halide::select(mask, old_score(), negative_infinity()))})}});
    }
    return block;
}

/// A tile of the step's columns, of a row or of as many as the block has.
std::optional<StreamedTile> StreamedScores::tile_of(const hi::Call *read) const {
    const auto operand = streamed_operand(stream_.algorithm, read, stream_.form.streamed, stream_.axis_name(stream_.form.row));
    const int bytes = read->type.bytes(), width = stream_.keys * bytes;
    if (!operand || bytes > 4 || (operand->outer >= 0 && width % 32 != 0)) {
        return std::nullopt;
    }
    StreamedTile tile{std::string(), *operand, read->type, 1, stream_.keys, 1, 0};
    if (operand->outer >= 0) {
        tile.swizzle = width % 128 == 0 ? 128 : width % 64 == 0 ? 64 : 32;
        tile.chunks = width / tile.swizzle;
        tile.chunk_columns = tile.swizzle / bytes;
        tile.rows = stream_.rows;
    }
    return tile;
}

/// Those that vary along the streamed axis are brought by the copy unit, or loaded while products are under way as many as the registers
/// have room for.
void StreamedScores::find_held() {
    if (!changes_) {
        return;
    }
    constexpr int bookkeeping = 44;  // addresses, loop counters, row statistics
    int room = stream_.consumer_registers() - stream_.columns / 2 - stream_.keys / 2 - stream_.keys / 4 - bookkeeping;
    std::vector<std::pair<Expr, std::optional<StreamedTile>>> reads;
    visit_reads(changed_, [&](const hi::Call *call) {
        const auto is_same = [&](const auto &read) { return hi::graph_equal(read.first, Expr(call)); };
        if (call->call_type == hi::Call::Image && reads_along(call, stream_.form.streamed) &&
            std::none_of(reads.begin(), reads.end(), is_same)) {
            reads.emplace_back(call, tile_of(call));
        }
    });
    std::stable_partition(reads.begin(), reads.end(), [](const auto &read) { return read.second.has_value(); });
    for (const auto &[read, tile] : reads) {
        const int registers = stream_.keys / 2 * std::max(read.type().bits(), 16) / 32;
        if (registers > room) {
            break;
        }
        room -= registers;
        const std::string name = fmt::format("ahead_{}", held_.size());
        stream_.add_registers(name, read.type(), {stream_.keys / 8, 2, 2});
        held_.emplace_back(read, name);
        if (tile) {
            tiles_.push_back(*tile);
            tiles_.back().name = fmt::format("operand_{}", tiles_.size() - 1);
            stream_.add_tile(tiles_.back(), stream_.stages);
        }
    }
}

const std::string *StreamedScores::held_name(const hi::Call *call) const {
    const auto found = std::find_if(held_.begin(), held_.end(), [&](const auto &held) { return hi::graph_equal(held.first, Expr(call)); });
    return found == held_.end() || loading_ ? nullptr : &found->second;
}

tile::Block StreamedScores::load_ahead(const Expr &step, const Expr &slot) {
    tile::Block block{{tile::Let{"s_tile", stream_.tile_at(step)}}};
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
        const StreamedTile &tile = tiles_[i];
        block.push_back(invoke("load_scores", {std::to_string(tile.swizzle), std::to_string(tile.rows)},
                               {buffer(held_[i].second), buffer(tile.name + "_tile", {slot, 0, 0, 0})}, {held_[i].second}));
    }
    loading_ = true;
    for (std::size_t i = tiles_.size(); i < held_.size(); ++i) {
        append(block, at_every_place(held_[i].first, [&, i]() -> tile::Statement {
                   return {tile::Store{held_[i].second,
                                       {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")},
                                       {stream_.bound(held_[i].first)}}};
               }));
    }
    loading_ = false;
    return block;
}

bool StreamedScores::reads_unheld_along(const Expr &e, const std::string &axis) const {
    bool found = false;
    visit_reads(e, [&](const hi::Call *call) {
        found = found || (call->call_type == hi::Call::Image && !held_name(call) && reads_along(call, axis));
    });
    return found;
}

/// Tensors are read at places inside of them only: where the last rows or columns of the tile lie outside, at the nearest.
tile::Block StreamedScores::at_every_place(const Expr &value, const std::function<tile::Statement()> &statement) {
    const std::string &row = stream_.axis_name(stream_.form.row);
    const bool reads_rows = reads_unheld_along(value, row), reads_columns = reads_unheld_along(value, stream_.form.streamed);
    if (reads_rows && stream_.row_exists().defined()) {
        stream_.clamped[row] = nearest(row, stream_.second.extents[stream_.form.row]);
    }
    const bool tail = reads_columns && !(mod(stream_.form.streamed_extent, stream_.keys) == Extent(0));
    const Expr is_inside = (tile::variable("s_tile") + 1) * stream_.keys <= to_halide(stream_.form.streamed_extent);
    tile::Block inside = score_loop({statement()});
    if (!tail) {
        stream_.clamped.clear();
        return inside;
    }
    stream_.clamped[stream_.form.streamed] = nearest(stream_.form.streamed, stream_.form.streamed_extent);
    tile::Block last = score_loop({statement()});
    stream_.clamped.clear();
    return {{tile::If{is_inside, std::move(inside)}}, {tile::If{!is_inside, std::move(last)}}};
}

}  // namespace tilewright
