#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/wide_access.h"
#include "lowering/passes/window_lines.h"
#include "lowering/tile_ir/dense_buffer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// A read of the vector loop: its first lane lies `offset` elements after that of its group's first read.
struct WindowRead {
    Expr call, first;
    std::int64_t offset = 0;
};
using Group = std::vector<WindowRead>;

/// Reads that are made whatever the conditions inside of an expression are.
class UnconditionalReads : public hi::IRGraphVisitor {
public:
    std::vector<Expr> calls;
    using hi::IRGraphVisitor::visit;
    void visit(const hi::Call *op) override {
        if (op->call_type == hi::Call::Halide) {
            calls.push_back(op);
        }
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Select *op) override { op->condition.accept(this); }
};

class ReplaceReads : public hi::IRGraphMutator {
public:
    std::map<Expr, Expr, hi::IRGraphDeepCompare> reads;
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        const auto found = reads.find(Expr(op));
        return found == reads.end() ? hi::IRGraphMutator::visit(op) : found->second;
    }
};

class WindowLoader {
public:
    WindowLoader(Launch &launch, const SymbolRanges &symbols)
        : launch_(launch), symbols_(symbols), ranges_(launch_ranges(launch, symbols)), multiples_(launch_multiples(launch)) {}

    /// `lines` is the unrolled loop whose body the block is.
    void run(Block &block, const For *lines = nullptr) {
        Block result;
        for (Statement &s : block) {
            auto *loop = s.as<For>();
            const bool goes_through_lines = loop && loop->level == Level::unroll && loop->extent.is_constant() && loop->extent.value() > 1;
            if (Block *body = body_of(s)) {
                run(*body, goes_through_lines ? loop : nullptr);
            }
            if (goes_through_lines) {
                result.insert(result.end(), std::make_move_iterator(before_lines_.begin()), std::make_move_iterator(before_lines_.end()));
                before_lines_.clear();
            }
            if (loop && loop->level == Level::vector && loop->extent.is_constant() && loop->extent.value() > 1) {
                load(*loop, lines, result);
            }
            result.push_back(std::move(s));
        }
        block = std::move(result);
    }

private:
    /// The axis whose vectors the loop goes through, where they begin at multiples of their length and lie inside.
    const Axis *axis_of(const For &loop) const {
        const Axis *axis = axis_stepped_by(launch_, loop);
        const bool lies_inside = axis && !axis->shift.defined() && (loop.whole || mod(axis->extent, loop.extent) == Extent(0));
        return lies_inside && begins_at_multiples(*axis, loop) ? axis : nullptr;
    }

    void load(For &loop, const For *lines, Block &before) {
        const Axis *axis = axis_of(loop);
        if (!axis) {
            return;
        }
        UnconditionalReads reads;
        for (const Statement &s : loop.body) {
            if (s.as<Store>() || s.as<tile::Fold>()) {
                for (const Expr &e : expressions_of(s)) {
                    e.accept(&reads);
                }
            }
        }
        ReplaceReads replace;
        for (Group &group : groups_of(reads.calls, loop, *axis)) {
            sort_by_place(group);
            if (!lines || !load_lines(group, loop, *axis, *lines, replace)) {
                load_group(group, loop, *axis, before, replace);
            }
        }
        if (replace.reads.empty()) {
            return;
        }
        for (Statement &s : loop.body) {
            if (auto *store = s.as<Store>()) {
                std::transform(store->values.begin(), store->values.end(), store->values.begin(),
                               [&](const Expr &e) { return replace.mutate(e); });
            } else if (auto *fold = s.as<tile::Fold>()) {
                std::transform(fold->terms.begin(), fold->terms.end(), fold->terms.begin(),
                               [&](const Expr &e) { return replace.mutate(e); });
            }
        }
    }

    /// Offsets count from the lowest read, whichever came first.
    static void sort_by_place(Group &group) {
        std::sort(group.begin(), group.end(), [](const WindowRead &a, const WindowRead &b) { return a.offset < b.offset; });
        const std::int64_t lowest = group.front().offset;
        for (WindowRead &read : group) {
            read.offset -= lowest;
        }
    }

    /// Reads of one tensor whose places differ by constants and move with the lane.
    std::vector<Group> groups_of(const std::vector<Expr> &calls, const For &loop, const Axis &axis) {
        std::vector<Group> groups;
        for (const Expr &call : calls) {
            const auto first = first_place(*call.as<hi::Call>(), loop, axis);
            if (!first) {
                continue;
            }
            bool known = false;
            for (Group &group : groups) {
                const Expr distance = group[0].call.as<hi::Call>()->name == call.as<hi::Call>()->name
                                          ? difference_of(*first, group[0].first, ranges_)
                                          : Expr();
                if (const auto *number = distance.defined() ? distance.as<hi::IntImm>() : nullptr) {
                    group.push_back({call, *first, number->value});
                    known = true;
                    break;
                }
            }
            if (!known) {
                groups.push_back({{call, *first, 0}});
            }
        }
        return groups;
    }

    /// The flat place of lane 0, over AXIS.vector, where lane v lies v elements after it.
    std::optional<Expr> first_place(const hi::Call &call, const For &loop, const Axis &axis) {
        const Buffer *buffer = launch_.find_buffer(call.name);
        if (!buffer || buffer->memory != Memory::global || buffer->types.size() > 1 || is_written(launch_.body, buffer->name)) {
            return std::nullopt;
        }
        Extent reach = 1;
        for (std::size_t i = 0; i < call.args.size(); ++i) {
            reach = reach + buffer->extents[i] * buffer->strides[i];
        }
        const bool has_fastest = std::find(buffer->strides.begin(), buffer->strides.end(), Extent(1)) != buffer->strides.end();
        if (!has_fastest || reach.bounds(symbols_).max >= std::numeric_limits<int>::max()) {
            return std::nullopt;
        }
        Expr flat = to_halide(buffer->offset);
        for (std::size_t i = 0; i < call.args.size(); ++i) {
            if (contains_read(call.args[i])) {
                return std::nullopt;
            }
            if (!(buffer->strides[i] == Extent(0))) {
                flat = flat + (buffer->strides[i] == Extent(1) ? call.args[i] : call.args[i] * to_halide(buffer->strides[i]));
            }
        }
        const int lanes = static_cast<int>(loop.extent.value());
        const std::string vector = axis.name + ".vector";
        ranges_[vector] = {0, std::max<std::int64_t>(axis.extent.bounds(symbols_).max / lanes - 1, 0)};
        multiples_[vector] = 1;
        VariableRanges ranges = ranges_;
        ranges["lane.v"] = {0, lanes - 1};
        const Expr lane = tile::variable("lane.v");
        flat =
            simplify_index(substitute_variables(flat, {{axis.name, tile::variable(vector) * lanes + lane}, {loop.variable, lane}}), ranges);
        if (!steps_by_one(flat, "lane.v", lanes, ranges)) {
            return std::nullopt;
        }
        return simplify_index(substitute_variables(flat, {{"lane.v", Expr(0)}}), ranges_);
    }

    void load_group(const Group &group, const For &loop, const Axis &axis, Block &before, ReplaceReads &replace) {
        const Buffer source = *launch_.find_buffer(group[0].call.as<hi::Call>()->name);
        Block loads;
        for (const Group &run : runs_of(group, loop.extent.value())) {
            load_run(source, run, group[0], loop, axis, loads, replace);
        }
        if (loads.empty()) {
            return;
        }
        // What the iterations of unrolled loops share stands apart, so that the compiler sees which of them load the same places.
        before.push_back({Let{place_name_, shared_place(group[0], loop, axis)}});
        before.insert(before.end(), std::make_move_iterator(loads.begin()), std::make_move_iterator(loads.end()));
    }

    /// Parts of a group that leave no vector out between them.
    static std::vector<Group> runs_of(const Group &group, std::int64_t lanes) {
        std::vector<Group> runs;
        for (const WindowRead &read : group) {
            if (runs.empty() || read.offset - runs.back().back().offset > lanes) {
                runs.emplace_back();
            }
            runs.back().push_back(read);
        }
        return runs;
    }

    /// Loads what a run reads in whole accesses; single elements where one would reach beyond.
    void load_run(const Buffer &source, const Group &run, const WindowRead &origin, const For &loop, const Axis &axis, Block &loads,
                  ReplaceReads &replace) {
        const std::int64_t lanes = loop.extent.value(), begin = run.front().offset, end = run.back().offset + lanes;
        const auto [unit, phase] = unit_of(source, origin.first);
        const bool is_window = run.size() > 1 && run.back().offset > begin;
        const std::int64_t width = std::min<std::int64_t>(lanes, widest_access / source.types[0].bytes());
        const bool is_one_access = unit >= width && (phase + begin) % width == 0;
        if ((!is_window && (unit < 2 || is_one_access)) || end - begin > 4 * lanes + 16) {
            return;
        }
        if (loads.empty()) {
            place_name_ = fresh(source.name + "_place", "");
        }
        const std::int64_t start = begin - (((phase + begin) % unit) + unit) % unit, pieces = (end - start + unit - 1) / unit;
        const Buffer registers = window_registers(source, pieces, unit);
        const Place place{source, moving_place(origin, loop, axis)};
        load_pieces(registers, place, {begin, end}, start, 0, pieces, loads);
        note_alignment(launch_, source.name, unit * source.types[0].bytes());
        for (const WindowRead &read : run) {
            replace.reads[read.call] = window_read(registers, loop, Expr(0), read.offset - start);
        }
    }

    /// Rows that several lines read are loaded once, before the loop over the lines: what is computed from them is then seen to be the
    /// same.
    bool load_lines(const Group &group, const For &loop, const Axis &axis, const For &lines, ReplaceReads &replace) {
        constexpr std::int64_t most_bytes = 640;  // of a thread's registers
        const Buffer source = *launch_.find_buffer(group[0].call.as<hi::Call>()->name);
        const std::int64_t lanes = loop.extent.value();
        const auto [unit, phase] = unit_of(source, group[0].first);
        const Expr shared = shared_place(group[0], loop, axis), moving = moving_place(group[0], loop, axis);
        const Expr rest = simplify_index(substitute_variables(moving, {{lines.variable, Expr(0)}}), ranges_);
        const Expr a_line = difference_of(substitute_variables(moving, {{lines.variable, Expr(1)}}), rest, ranges_);
        const auto *line_step = a_line.as<hi::IntImm>();
        if (!line_step || line_step->value < 1 || mentions_inside(shared, lines) || mentions_inside(rest, lines) ||
            !hi::is_const_zero(difference_of(moving, rest + tile::variable(lines.variable) * a_line, ranges_))) {
            return false;
        }
        const std::vector<Group> runs = runs_of(group, lanes);
        std::vector<PlaceInterval> intervals;
        for (const Group &run : runs) {
            intervals.push_back({run.front().offset, run.back().offset + lanes});
        }
        const auto rows = share_lines(intervals, line_step->value, lines.extent.value(), unit, phase);
        const std::int64_t row_count = rows ? static_cast<std::int64_t>(rows->rows.size()) : 0;
        if (!rows || row_count * rows->pieces * unit * source.types[0].bytes() > most_bytes) {
            return false;
        }
        place_name_ = fresh(source.name + "_place", "");
        before_lines_.push_back({Let{place_name_, shared}});
        const Buffer registers = window_registers(source, row_count * rows->pieces, unit);
        for (std::int64_t r = 0; r < row_count; ++r) {
            load_pieces(registers, {source, rest}, rows->rows[r], rows->start + r * rows->spacing, r * rows->pieces, rows->pieces,
                        before_lines_);
        }
        note_alignment(launch_, source.name, unit * source.types[0].bytes());
        for (std::size_t k = 0; k < runs.size(); ++k) {
            const Expr row = tile::variable(lines.variable) * static_cast<int>(rows->step) + static_cast<int>(rows->first_row[k]);
            const Expr piece = simplify_index(row * static_cast<int>(rows->pieces), ranges_);
            for (const WindowRead &read : runs[k]) {
                replace.reads[read.call] =
                    window_read(registers, loop, piece, read.offset - rows->start - rows->first_row[k] * rows->spacing);
            }
        }
        return true;
    }

    /// Whether an expression needs what is only known inside of the loop.
    static bool mentions_inside(const Expr &e, const For &loop) {
        bool found = mentions(e, loop.variable);
        visit_statements(loop.body, [&](const Statement &s) {
            const auto *let = s.as<Let>();
            found = found || (let && mentions(e, let->name));
        });
        return found;
    }

    Buffer window_registers(const Buffer &source, std::int64_t pieces, std::int64_t unit) {
        Buffer registers = dense_buffer(fresh(source.name + "_window", ".vec"), source.types, Memory::registers, {pieces, unit});
        launch_.buffers.push_back(registers);
        return registers;
    }

    /// Places in memory, counted from the shared one.
    struct Place {
        const Buffer &source;
        Expr moving;
    };
    std::vector<Expr> indices_at(const Place &place, std::int64_t offset) const {
        std::vector<Expr> indices(place.source.strides.size(), Expr(0));
        const auto fastest = std::find(place.source.strides.begin(), place.source.strides.end(), Extent(1)) - place.source.strides.begin();
        indices[fastest] = tile::variable(place_name_) + simplify_index(place.moving + static_cast<int>(offset), ranges_);
        return indices;
    }

    /// What is read of [start, start + pieces * unit): whole accesses; single elements where one would reach beyond.
    void load_pieces(const Buffer &registers, const Place &place, const PlaceInterval &read, std::int64_t start, std::int64_t first_piece,
                     std::int64_t pieces, Block &loads) const {
        const std::int64_t unit = registers.extents[1].value();
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            const std::int64_t at = start + piece * unit;
            const Expr kept(static_cast<int>(first_piece + piece));
            if (unit > 1 && at >= read.begin && at + unit <= read.end) {
                loads.push_back({VectorLoad{registers.name, place.source.name, indices_at(place, at), static_cast<int>(unit), {kept}, {}}});
                continue;
            }
            for (std::int64_t i = std::max(at, read.begin); i < std::min(at + unit, read.end); ++i) {
                loads.push_back(
                    {Store{registers.name, {kept, Expr(static_cast<int>(i - at))}, {tile::read(place.source, indices_at(place, i))}}});
            }
        }
    }

    /// Lane v of a read that begins `offset` elements after the first of `piece`.
    Expr window_read(const Buffer &registers, const For &loop, const Expr &piece, std::int64_t offset) const {
        const int unit = static_cast<int>(registers.extents[1].value());
        const Expr place = tile::variable(loop.variable) + static_cast<int>(offset);
        return tile::read(registers, {simplify_index(piece + place / unit, ranges_), simplify_index(place % unit, ranges_)});
    }

    /// The first element of the vector with all axes as sums of their leaves; unrolled ones begin where `begin` says so.
    Expr place_over_leaves(const WindowRead &read, const For &loop, const Axis &axis, bool begin) const {
        Substitution leaves;
        Expr vector = 0;
        for (const Leaf &leaf : axis.leaves) {  // all but the lanes go in steps of whole vectors
            if (leaf.name != loop.variable && !(leaf.extent == Extent(1))) {
                vector = vector + tile::variable(leaf.name) * to_halide(floor_div(leaf.stride, loop.extent));
            }
        }
        leaves[axis.name + ".vector"] = vector;
        for (const Axis &other : launch_.axes) {
            const bool has_unrolled =
                std::any_of(other.leaves.begin(), other.leaves.end(), [](const Leaf &l) { return l.level == Level::unroll; });
            if (!has_unrolled || other.name == axis.name) {
                continue;
            }
            Expr sum = 0;
            for (const Leaf &leaf : other.leaves) {
                const bool left_out = (leaf.level == Level::unroll && begin) || leaf.extent == Extent(1);
                sum = left_out ? sum : sum + tile::variable(leaf.name) * to_halide(leaf.stride);
            }
            leaves[other.name] = sum;
        }
        return substitute_variables(read.first, leaves);
    }
    Expr shared_place(const WindowRead &read, const For &loop, const Axis &axis) const {
        return simplify_index(place_over_leaves(read, loop, axis, true), ranges_);
    }
    Expr moving_place(const WindowRead &read, const For &loop, const Axis &axis) const {
        return difference_of(place_over_leaves(read, loop, axis, false), place_over_leaves(read, loop, axis, true), ranges_);
    }
    /// The widest access, in elements, that may begin at `first` moved by a constant, and by how much `first` itself lies after such a
    /// place.
    std::pair<std::int64_t, std::int64_t> unit_of(const Buffer &buffer, const Expr &first) const {
        std::int64_t constant = 0;
        Expr rest = first;
        if (const auto *sum = first.as<hi::Add>(); sum && sum->b.as<hi::IntImm>()) {
            constant = sum->b.as<hi::IntImm>()->value;
            rest = sum->a;
        }
        std::int64_t unit = widest_access / static_cast<std::int64_t>(buffer.types[0].bytes());
        while (unit > 1 && (divisor_of(rest, multiples_) % unit != 0 || !(mod(buffer.address_offset, Extent(unit)) == Extent(0)))) {
            unit /= 2;
        }
        return {std::max<std::int64_t>(unit, 1), constant};
    }

    std::string fresh(const std::string &base, const std::string &ending) {
        std::string name = base + ending;
        for (int i = 2; !names_.insert(name).second || launch_.find_buffer(name); ++i) {
            name = base + "_" + std::to_string(i) + ending;
        }
        return name;
    }

    Launch &launch_;
    const SymbolRanges &symbols_;
    VariableRanges ranges_;
    std::map<std::string, std::int64_t> multiples_;
    std::set<std::string> names_;
    std::string place_name_;  ///< of the group that is being loaded
    Block before_lines_;      ///< loads that go before the innermost unrolled loop
};

}  // namespace

void load_windows(Launch &launch, const SymbolRanges &symbols) { WindowLoader(launch, symbols).run(launch.body); }

}  // namespace tilewright
