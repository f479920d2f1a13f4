#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/launch_ranges.h"
#include "lowering/passes/operation.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

class Widener {
public:
    Widener(Launch &launch, const SymbolRanges &symbols) : launch_(launch), symbols_(symbols), ranges_(launch_ranges(launch, symbols)) {}

    void run(Block &block) {
        Block result;
        for (Statement &s : block) {
            if (Block *body = body_of(s)) {
                run(*body);
            }
            auto *loop = s.as<For>();
            if (loop && loop->level == Level::unroll) {
                Block squares;
                load_squares(*loop, squares);
                move_to(result, squares);
            }
            if (!loop || loop->level != Level::vector || !loop->extent.is_constant() || loop->extent.value() < 2) {
                result.push_back(std::move(s));
                continue;
            }
            Block before, after;
            widen(*loop, before, after);
            move_to(result, before);
            result.push_back(std::move(s));
            move_to(result, after);
        }
        block = std::move(result);
    }

private:
    static void move_to(Block &to, Block &from) { to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end())); }

    class Replace : public hi::IRGraphMutator {
    public:
        Replace(Widener &widener, const For &loop, Block &before, std::vector<Expr> conditions = {})
            : widener_(widener), loop_(loop), before_(before), conditions_(std::move(conditions)) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            Expr e = hi::IRGraphMutator::visit(op);
            const auto *call = e.as<hi::Call>();
            if (call && call->call_type == hi::Call::Halide) {
                return widener_.widened_load(e, loop_, before_, conditions_);
            }
            return e;
        }
        /// A load under a select may be out of bounds on the other side: it is made under the condition, which all lanes must share.
        Expr visit(const hi::Select *op) override {
            const Expr condition = mutate(op->condition);
            const Axis *axis = widener_.axis_of(loop_);
            const bool shared = axis && !contains_read(condition) && !mentions(condition, axis->name) && !mentions(condition, loop_.variable);
            conditions_.push_back(shared ? condition : Expr());
            const Expr a = Replace(widener_, loop_, before_, conditions_).mutate(op->true_value);
            conditions_.back() = shared ? !condition : Expr();
            const Expr b = Replace(widener_, loop_, before_, conditions_).mutate(op->false_value);
            conditions_.pop_back();
            return is_zero_without(condition, a) && is_positive_zero(b) ? a : hi::Select::make(condition, a, b);
        }
        /// Whether this is what was loaded under the condition alone, so that it is 0 where that does not hold.
        bool is_zero_without(const Expr &condition, const Expr &value) const {
            const Operation operation = operation_of(value);
            if (operation.name == "convert") {
                return is_zero_without(condition, operation.operands[0]);
            }
            const auto *call = value.as<hi::Call>();
            return call && std::any_of(widener_.loads_.begin(), widener_.loads_.end(), [&](const auto &load) {
                const auto &[read, name, under] = load;
                return call->name == name && under.defined() && hi::graph_equal(under, condition);
            });
        }


    private:
        Widener &widener_;
        const For &loop_;
        Block &before_;
        std::vector<Expr> conditions_;  ///< around what is being rewritten; undefined: one that lanes do not share
    };

    /// An unrolled loop around a vector loop: what lies along the unrolled axis is loaded by vectors along it, one for each lane.
    void load_squares(For &unrolled, Block &before) {
        for (Statement &s : unrolled.body) {
            auto *lanes = s.as<For>();
            if (!lanes || lanes->level != Level::vector || !lanes->extent.is_constant() || !axis_of(unrolled)) {
                continue;
            }
            SquareLoads squares(*this, unrolled, *lanes, before);
            for (Statement &inner : lanes->body) {
                if (auto *store = inner.as<Store>()) {
                    for (Expr &e : store->values) {
                        e = squares.mutate(e);
                    }
                }
            }
        }
    }

    class SquareLoads : public hi::IRGraphMutator {
    public:
        SquareLoads(Widener &widener, const For &unrolled, const For &lanes, Block &before) : widener_(widener), unrolled_(unrolled), lanes_(lanes), before_(before) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            Expr e = hi::IRGraphMutator::visit(op);
            const auto *call = e.as<hi::Call>();
            const Buffer *buffer = call && call->call_type == hi::Call::Halide ? widener_.launch_.find_buffer(call->name) : nullptr;
            const int width = static_cast<int>(unrolled_.extent.value());
            if (!buffer || buffer->memory != Memory::global || width < 2 || widener_.is_written(buffer->name) || !widener_.is_inside(*buffer, call->args) ||
                !widener_.is_wide(*buffer, call->args, unrolled_, width)) {
                return e;
            }
            Buffer registers = widener_.vector_buffer(*buffer, width);
            Buffer *kept = widener_.launch_.find_buffer(registers.name);
            kept->extents = {lanes_.extent, width};
            kept->strides = {width, 1};
            const std::string axis = widener_.axis_of(unrolled_)->name;
            const std::vector<Expr> first = at_square_start(call->args, axis);
            VectorLoad load{registers.name, call->name, first, width, {tile::variable(lanes_.variable)}, {}};
            before_.push_back({For{lanes_.variable, lanes_.extent, Level::vector, {Statement{load}}}});
            return tile::read(*kept, {tile::variable(lanes_.variable), tile::variable(unrolled_.variable)});
        }
        /// What a select guards stays where it is.
        Expr visit(const hi::Select *op) override { return op; }

    private:
        /// The axis at the start of its square: without the unrolled leaf.
        std::vector<Expr> at_square_start(const std::vector<Expr> &indices, const std::string &axis) const {
            std::vector<Expr> result;
            for (const Expr &e : indices) {
                result.push_back(substitute_variables(e, {{axis, widener_.without_leaf(axis, unrolled_.variable)}}));
            }
            return result;
        }
        Widener &widener_;
        const For &unrolled_;
        const For &lanes_;
        Block &before_;
    };
    Expr without_leaf(const std::string &axis, const std::string &left_out) const {
        Expr sum = 0;
        for (const Axis &a : launch_.axes) {
            for (const Leaf &leaf : a.leaves) {
                if (a.name == axis && leaf.name != left_out && !(leaf.extent == Extent(1))) {
                    sum = sum + (leaf.stride == Extent(1) ? tile::variable(leaf.name) : tile::variable(leaf.name) * to_halide(leaf.stride));
                }
            }
        }
        return simplify_index(sum, ranges_);
    }

    /// What an expression of a vector loop is modulo the lanes: the lane (1), nothing (0), or not known.
    class LaneResidue {
    public:
        LaneResidue(std::string axis, std::string lane, std::int64_t lanes) : axis_(std::move(axis)), lane_(std::move(lane)), lanes_(lanes) {}
        bool varies(const Expr &e) const { return mentions(e, axis_) || mentions(e, lane_); }
        std::optional<std::int64_t> operator()(const Expr &e) const {
            if (const auto *op = e.as<hi::IntImm>()) {
                return op->value % lanes_ == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
            }
            if (const auto *op = e.as<hi::Variable>()) {
                const bool moves = op->name == axis_ || op->name == lane_;
                return moves ? std::optional<std::int64_t>(1) : op->name == axis_ + ".first" ? std::optional<std::int64_t>(0) : std::nullopt;
            }
            if (const auto *op = e.as<hi::Add>()) {
                const auto a = (*this)(op->a), b = (*this)(op->b);
                return a && b ? std::optional(*a + *b) : std::nullopt;
            }
            if (const auto *op = e.as<hi::Mul>()) {
                const auto *by = op->b.as<hi::IntImm>();
                if (by && by->value % lanes_ == 0 && !varies(op->a)) {
                    return 0;
                }
                const auto a = (*this)(op->a);
                return by && a ? std::optional(*a * by->value) : std::nullopt;
            }
            if (const auto *op = e.as<hi::Mod>()) {
                const auto *by = op->b.as<hi::IntImm>();
                const auto a = (*this)(op->a);
                return by && by->value > 0 && by->value % lanes_ == 0 && a && (*a == 0 || *a == 1) ? a : std::nullopt;
            }
            return std::nullopt;
        }

    private:
        std::string axis_, lane_;
        std::int64_t lanes_;
    };
    /// Quotients by multiples of the lanes are those of the first lane: what they index is the same for the whole vector.
    class FirstLane : public hi::IRGraphMutator {
    public:
        FirstLane(const std::string &axis, const std::string &lane, std::int64_t lanes, Substitution first, bool splits_remainders)
            : residue_(axis, lane, lanes), lane_(lane), lanes_(lanes), first_(std::move(first)), splits_remainders_(splits_remainders) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Div *op) override {
            const Expr a = mutate(op->a), b = mutate(op->b);
            return is_whole(a, b) ? substitute_variables(a, first_) / b : hi::Div::make(a, b);
        }
        Expr visit(const hi::Mod *op) override {
            const Expr a = mutate(op->a), b = mutate(op->b);
            return splits_remainders_ && is_whole(a, b) ? substitute_variables(a, first_) % b + tile::variable(lane_) : hi::Mod::make(a, b);
        }

    private:
        bool is_whole(const Expr &a, const Expr &by) const {
            const auto *number = by.as<hi::IntImm>();
            return a.type() == Halide::Int(32) && number && number->value > 0 && number->value % lanes_ == 0 && residue_(a) == std::optional<std::int64_t>(1);
        }
        LaneResidue residue_;
        std::string lane_;
        std::int64_t lanes_;
        Substitution first_;
        bool splits_remainders_;
    };
    /// Whether the vectors of the loop begin at multiples of their length.
    bool is_aligned(const Axis &axis, const For &loop) const {
        std::int64_t multiple = 0;
        for (const Leaf &leaf : axis.leaves) {
            if (leaf.name != loop.variable) {
                multiple = std::gcd(multiple, leaf.stride.is_constant() ? leaf.stride.value() : 1);
            }
        }
        return multiple % loop.extent.value() == 0;
    }
    void share_quotients(For &loop) {
        const Axis *axis = axis_of(loop);
        if (!axis || axis->shift.defined() || axis->leaves.size() < 2 || !is_aligned(*axis, loop)) {
            return;
        }
        FirstLane first(axis->name, loop.variable, loop.extent.value(),
                        {{axis->name, tile::variable(axis->name + ".first")}, {loop.variable, Expr(0)}}, false);
        share_quotients(loop.body, first);
    }
    static void share_quotients(Block &block, FirstLane &first) {
        const auto rewrite = [&](std::vector<Expr> &expressions) {
            for (Expr &e : expressions) {
                e = first.mutate(e);
            }
        };
        for (Statement &s : block) {
            if (auto *store = s.as<Store>()) {
                rewrite(store->values);
                rewrite(store->indices);
            } else if (auto *fold = s.as<tile::Fold>()) {
                rewrite(fold->terms);
            } else if (Block *body = body_of(s)) {
                share_quotients(*body, first);
            }
        }
    }

    void widen(For &loop, Block &before, Block &after) {
        loads_.clear();
        share_quotients(loop);
        Replace replace(*this, loop, before);
        for (Statement &s : loop.body) {
            widen_statement(s, loop, replace, before, after);
        }
    }

    void widen_statement(Statement &s, const For &loop, Replace &replace, Block &before, Block &after) {
        if (auto *store = s.as<Store>()) {
            for (Expr &e : store->values) {
                e = replace.mutate(e);
            }
            widen_store(*store, loop, after);
        } else if (auto *fold = s.as<tile::Fold>()) {
            for (Expr &e : fold->terms) {
                e = replace.mutate(e);
            }
        }
    }

    Expr widened_load(const Expr &e, const For &loop, Block &before, const std::vector<Expr> &conditions) {
        const auto *call = e.as<hi::Call>();
        Buffer *buffer = launch_.find_buffer(call->name);
        const int lanes = static_cast<int>(loop.extent.value());
        if (!buffer || buffer->memory == Memory::registers || is_written_beside(*buffer, loop) || !is_wide(*buffer, call->args, loop, lanes)) {
            return e;
        }
        Expr condition;
        if (buffer->memory != Memory::shared && !is_inside(*buffer, call->args)) {
            for (const Expr &c : conditions) {
                if (!c.defined()) {
                    return e;
                }
                condition = condition.defined() ? condition && c : c;
            }
            if (!condition.defined()) {
                return e;
            }
        }
        for (const auto &[known, name, under] : loads_) {
            const bool same = under.defined() == condition.defined() && (!under.defined() || hi::graph_equal(under, condition));
            if (same && hi::graph_equal(known, e)) {
                return tile::read(*launch_.find_buffer(name), {tile::variable(loop.variable)});
            }
        }
        const Buffer registers = vector_buffer(*buffer, lanes);
        loads_.emplace_back(e, registers.name, condition);
        before.push_back({VectorLoad{registers.name, call->name, at_first(call->args, loop), lanes, {}, condition}});
        return tile::read(registers, {tile::variable(loop.variable)});
    }

    void widen_store(Store &store, const For &loop, Block &after) {
        Buffer *buffer = launch_.find_buffer(store.buffer);
        const int lanes = static_cast<int>(loop.extent.value());
        if (buffer->memory == Memory::registers || store.atomic_add || store.values.size() != 1 || !is_wide(*buffer, store.indices, loop, lanes)) {
            return;
        }
        const Buffer registers = vector_buffer(*buffer, lanes);
        after.push_back({VectorStore{registers.name, store.buffer, at_first(store.indices, loop), lanes}});
        store.buffer = registers.name;
        store.indices = {tile::variable(loop.variable)};
    }

    Buffer vector_buffer(const Buffer &of, int lanes) {
        Buffer buffer;
        std::string base = of.name;
        for (int i = 2; launch_.find_buffer(base + ".vec"); ++i) {
            base = of.name + "_" + std::to_string(i);
        }
        buffer.name = base + ".vec";
        buffer.types = of.types;
        buffer.memory = Memory::registers;
        buffer.extents = {lanes};
        buffer.strides = {1};
        launch_.buffers.push_back(buffer);
        return buffer;
    }

    /// Whether what is loaded before the loop may differ from what the loop reads. Barriers part the writes of shared memory from its reads.
    bool is_written_beside(const Buffer &buffer, const For &loop) {
        if (buffer.memory != Memory::shared) {
            return is_written(buffer.name);
        }
        bool written = false;
        visit_statements(loop.body, [&](const Statement &s) {
            const auto list = written_buffers(s);
            written = written || std::find(list.begin(), list.end(), buffer.name) != list.end();
        });
        return written;
    }
    bool is_written(const std::string &name) {
        bool written = false;
        visit_statements(launch_.body, [&](const Statement &s) {
            const auto list = written_buffers(s);
            written = written || std::find(list.begin(), list.end(), name) != list.end();
        });
        return written;
    }

    bool is_inside(const Buffer &buffer, const std::vector<Expr> &indices) const {
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const std::string name = as_variable(indices[i]);
            const bool whole = std::any_of(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &a) { return a.name == name && a.extent == buffer.extents[i]; });
            if (whole) {
                continue;
            }
            const auto range = range_of(indices[i], ranges_);
            if (!range || range->min < 0 || !buffer.extents[i].is_constant() || range->max >= buffer.extents[i].value()) {
                return false;
            }
        }
        return true;
    }

    const Axis *axis_of(const For &loop) const {
        for (const Axis &axis : launch_.axes) {
            if (!axis.leaves.empty() && axis.leaves.back().name == loop.variable && axis.leaves.back().stride == Extent(1)) {
                return &axis;
            }
        }
        return nullptr;
    }

    static std::vector<Expr> at_first(const std::vector<Expr> &indices, const For &loop, const std::string &axis) {
        std::vector<Expr> result;
        for (const Expr &e : indices) {
            result.push_back(substitute_variables(e, {{axis, tile::variable(axis + ".first")}, {loop.variable, Expr(0)}}));
        }
        return result;
    }
    std::vector<Expr> at_first(const std::vector<Expr> &indices, const For &loop) const { return at_first(indices, loop, axis_of(loop)->name); }

    /// Whether element v of the vector lies v elements after the first, and the first on a boundary that the access may use.
    bool is_wide(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop, int lanes) {
        const Axis *axis = axis_of(loop);
        const std::int64_t bytes = std::min<std::int64_t>(static_cast<std::int64_t>(buffer.types[0].bytes()) * lanes, widest_access);
        if (!axis || buffer.types.size() > 1 || (lanes & (lanes - 1)) != 0) {
            return false;
        }
        if (!loop.whole && (axis->shift.defined() || !(mod(axis->extent, loop.extent) == Extent(0)))) {
            return false;
        }
        if (!is_aligned(*axis, loop)) {
            return false;
        }
        // Each index as (lanes * q + v); the flat offset must be its value at v = 0, plus v.
        const Expr lane = tile::variable("lane.v"), group = tile::variable("lane.q");
        Expr flat = to_halide(buffer.offset);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (contains_read(indices[i]) && mentions(indices[i], axis->name)) {
                return false;
            }
            if (!(buffer.strides[i] == Extent(0))) {
                flat = flat + (buffer.strides[i] == Extent(1) ? indices[i] : indices[i] * to_halide(buffer.strides[i]));
            }
        }
        VariableRanges ranges = ranges_;
        ranges["lane.v"] = {0, lanes - 1};
        ranges["lane.q"] = {0, (axis->extent.bounds(symbols_).max + lanes - 1) / lanes};
        const Expr start = axis->shift.defined() ? group * lanes - axis->shift : group * lanes;
        if (!axis->shift.defined()) {
            flat = FirstLane(axis->name, loop.variable, lanes, {{axis->name, tile::variable(axis->name + ".first")}, {loop.variable, Expr(0)}}, true).mutate(flat);
        }
        flat = simplify_index(substitute_variables(flat, {{axis->name, start + lane}, {axis->name + ".first", start}, {loop.variable, lane}}), ranges);
        if (!steps_by_one(flat, "lane.v", lanes, ranges)) {
            return false;
        }
        const Expr first = simplify_index(substitute_variables(flat, {{"lane.v", Expr(0)}}), ranges);
        const std::int64_t unit = bytes / static_cast<std::int64_t>(buffer.types[0].bytes());
        std::map<std::string, std::int64_t> multiples;
        for (const Axis &other : launch_.axes) {
            std::int64_t m = 0;
            for (const Leaf &leaf : other.leaves) {
                m = std::gcd(m, leaf.stride.is_constant() ? leaf.stride.value() : 1);
            }
            multiples[other.name] = m == 0 ? 1 : m;
        }
        if (!(mod(buffer.address_offset, Extent(unit)) == Extent(0)) || !(axis->shift.defined() ? is_multiple_of(first, unit, multiples) : divisor_of(first, multiples) % unit == 0)) {
            return false;
        }
        buffer_alignment(buffer.name, bytes);
        return true;
    }
    void buffer_alignment(const std::string &name, std::int64_t bytes) {
        Buffer *buffer = launch_.find_buffer(name);
        buffer->alignment = std::max(buffer->alignment, bytes);
    }

    Launch &launch_;
    const SymbolRanges &symbols_;
    VariableRanges ranges_;
    std::vector<std::tuple<Expr, std::string, Expr>> loads_;  ///< read, registers, condition
};

}  // namespace

void widen_accesses(Launch &launch, const SymbolRanges &symbols) { Widener(launch, symbols).run(launch.body); }

}  // namespace tilewright
