#include <algorithm>
#include <optional>
#include <tuple>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/first_lane.h"
#include "lowering/passes/operation.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/wide_access.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

class Widener {
public:
    Widener(Launch &launch, const SymbolRanges &symbols) : launch_(launch), access_(launch, symbols) {}

    void run(Block &block) {
        Block result;
        for (std::size_t i = 0; i < block.size(); ++i) {
            Statement &s = block[i];
            if (i + 1 < block.size() && widen_edges(s, block[i + 1], result)) {
                result.push_back(std::move(s));
                result.push_back(std::move(block[++i]));
                continue;
            }
            if (Block *body = body_of(s)) {
                run(*body);
            }
            auto *loop = s.as<For>();
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
    /// Two loops over a vector's lanes, one for those inside of a shifted axis, one for those at its ends: both read what is loaded here.
    struct Edges {
        Expr inside, touches;  ///< the axis: the whole vector, some lane
        Block *before;
    };

    static void move_to(Block &to, Block &from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    }

    class Replace : public hi::IRGraphMutator {
    public:
        /// `at_ends`: only what is loaded before the edges are told apart.
        Replace(Widener &widener, const For &loop, Block &before, std::vector<Expr> conditions = {}, bool at_ends = false)
            : widener_(widener), loop_(loop), before_(before), conditions_(std::move(conditions)), at_ends_(at_ends) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            Expr e = hi::IRGraphMutator::visit(op);
            const auto *call = e.as<hi::Call>();
            if (call && call->call_type == hi::Call::Halide) {
                return widener_.widened_load(e, loop_, before_, conditions_, at_ends_);
            }
            return e;
        }
        /// A load under a select may be out of bounds on the other side: it is made under the condition, which all lanes must share.
        Expr visit(const hi::Select *op) override {
            const Expr condition = mutate(op->condition);
            const Axis *axis = axis_stepped_by(widener_.launch_, loop_);
            const bool shared =
                axis && !contains_read(condition) && !mentions(condition, axis->name) && !mentions(condition, loop_.variable);
            conditions_.push_back(shared ? condition : Expr());
            const Expr a = Replace(widener_, loop_, before_, conditions_, at_ends_).mutate(op->true_value);
            conditions_.back() = shared ? !condition : Expr();
            const Expr b = Replace(widener_, loop_, before_, conditions_, at_ends_).mutate(op->false_value);
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
        bool at_ends_;
    };

    /// False where the statements are no such loops; then nothing was done.
    bool widen_edges(Statement &inside, Statement &ends, Block &before) {
        auto *whole_guard = inside.as<If>(), *end_guard = ends.as<If>();
        auto *whole = whole_guard && whole_guard->body.size() == 1 ? whole_guard->body[0].as<For>() : nullptr;
        auto *end = whole && end_guard && end_guard->body.size() == 1 ? end_guard->body[0].as<For>() : nullptr;
        if (!end || !whole->whole || end->rolled || end->variable != whole->variable ||
            !hi::graph_equal(end_guard->condition, !whole_guard->condition)) {
            return false;
        }
        const Axis *axis = axis_stepped_by(launch_, *whole);
        const Expr first = tile::variable(axis->name + ".first");
        const Expr touches = first > -static_cast<int>(whole->extent.value()) && first < to_halide(axis->extent);
        edges_ = Edges{whole_guard->condition, whole_guard->condition || touches, &before};
        Block loads, stores;
        widen(*whole, loads, stores);
        Replace replace(*this, *whole, loads, {}, true);
        replace_reads(end->body, replace);
        edges_.reset();
        Block body = std::move(loads);
        move_to(body, whole_guard->body);
        move_to(body, stores);
        whole_guard->body = std::move(body);
        return true;
    }
    static void replace_reads(Block &block, Replace &replace) {
        for (Statement &s : block) {
            auto *store = s.as<Store>();
            auto *fold = s.as<tile::Fold>();
            for (std::vector<Expr> *list : {store ? &store->values : nullptr, fold ? &fold->terms : nullptr}) {
                for (std::size_t i = 0; list && i < list->size(); ++i) {
                    (*list)[i] = replace.mutate((*list)[i]);
                }
            }
            if (Block *body = body_of(s)) {
                replace_reads(*body, replace);
            }
        }
    }

    void share_quotients(For &loop) {
        const Axis *axis = axis_stepped_by(launch_, loop);
        if (!axis || axis->shift.defined() || axis->leaves.size() < 2 || !begins_at_multiples(*axis, loop)) {
            return;
        }
        share_quotients(loop.body, {axis->name, loop.variable, loop.extent.value()});
    }
    static void share_quotients(Block &block, const VectorAxis &vector) {
        const auto rewrite = [&](std::vector<Expr> &expressions) {
            for (Expr &e : expressions) {
                e = at_first_lane(e, vector, false);
            }
        };
        for (Statement &s : block) {
            if (auto *store = s.as<Store>()) {
                rewrite(store->values);
                rewrite(store->indices);
            } else if (auto *fold = s.as<tile::Fold>()) {
                rewrite(fold->terms);
            } else if (Block *body = body_of(s)) {
                share_quotients(*body, vector);
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

    Expr widened_load(const Expr &e, const For &loop, Block &before, const std::vector<Expr> &conditions, bool at_ends) {
        const auto *call = e.as<hi::Call>();
        Buffer *buffer = launch_.find_buffer(call->name);
        const int lanes = static_cast<int>(loop.extent.value());
        if (!buffer || buffer->memory == Memory::registers || is_written_beside(*buffer, loop)) {
            return e;
        }
        const bool crosses_edges = edges_ && buffer->memory == Memory::global;
        const bool aligned = (crosses_edges || !at_ends) && is_wide(*buffer, call->args, loop);
        if ((at_ends && !crosses_edges) || (!aligned && !begins_anywhere(*buffer, call->args, loop))) {
            return e;
        }
        Expr condition;  // where there is none, each lane loads what guards around the loop allow
        if (buffer->memory != Memory::shared && !access_.is_inside(*buffer, call->args)) {
            for (const Expr &c : conditions) {
                if (!c.defined()) {
                    return e;
                }
                condition = condition.defined() ? condition && c : c;
            }
        }
        if (crosses_edges) {
            condition = condition.defined() ? edges_->touches && condition : edges_->touches;
        }
        for (const auto &[known, name, under] : loads_) {
            const bool same = under.defined() == condition.defined() && (!under.defined() || hi::graph_equal(under, condition));
            if (same && hi::graph_equal(known, e)) {
                return tile::read(*launch_.find_buffer(name), {tile::variable(loop.variable)});
            }
        }
        const Buffer registers = add_vector_registers(launch_, *buffer, lanes);
        loads_.emplace_back(e, registers.name, condition);
        VectorLoad load{registers.name, call->name, at_first(call->args, loop), lanes, {}, condition, {}, aligned};
        if (crosses_edges && aligned) {
            load.inside = edges_->inside;
        }
        (crosses_edges ? *edges_->before : before).push_back({std::move(load)});
        return tile::read(registers, {tile::variable(loop.variable)});
    }

    void widen_store(Store &store, const For &loop, Block &after) {
        Buffer *buffer = launch_.find_buffer(store.buffer);
        const int lanes = static_cast<int>(loop.extent.value());
        if (buffer->memory == Memory::registers || store.values.size() != 1 || !is_wide(*buffer, store.indices, loop)) {
            return;
        }
        const Buffer registers = add_vector_registers(launch_, *buffer, lanes);
        after.push_back({VectorStore{registers.name, store.buffer, at_first(store.indices, loop), lanes, store.atomic}});
        store.buffer = registers.name;
        store.indices = {tile::variable(loop.variable)};
        store.atomic.reset();
    }

    bool is_wide(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop) {
        const int lanes = static_cast<int>(loop.extent.value());
        if (!access_.why_narrow(buffer, indices, loop, lanes).empty()) {
            return false;
        }
        note_alignment(launch_, buffer.name, access_bytes(buffer, lanes));
        return true;
    }

    /// Whether two aligned accesses beat one for each element.
    bool begins_anywhere(const Buffer &buffer, const std::vector<Expr> &indices, const For &loop) const {
        constexpr std::int64_t least_lanes = 4, least_bytes = 8;
        const std::int64_t lanes = loop.extent.value(), bytes = lanes * buffer.types[0].bytes();
        const bool goes_up =
            std::all_of(buffer.strides.begin(), buffer.strides.end(), [](const Extent &e) { return e.is_constant() && e.value() >= 0; });
        return buffer.memory == Memory::global && buffer.types.size() == 1 && lanes >= least_lanes && bytes >= least_bytes && goes_up &&
               access_.why_apart(buffer, indices, loop, static_cast<int>(lanes)).empty();
    }

    /// Whether what is loaded before the loop may differ from what the loop reads. Barriers part the writes of shared memory from its
    /// reads.
    bool is_written_beside(const Buffer &buffer, const For &loop) {
        return is_written(buffer.memory == Memory::shared ? loop.body : launch_.body, buffer.name);
    }
    std::vector<Expr> at_first(const std::vector<Expr> &indices, const For &loop) const {
        const std::string axis = axis_stepped_by(launch_, loop)->name;
        std::vector<Expr> result;
        for (const Expr &e : indices) {
            result.push_back(substitute_variables(e, {{axis, tile::variable(axis + ".first")}, {loop.variable, Expr(0)}}));
        }
        return result;
    }

    Launch &launch_;
    WideAccess access_;
    std::vector<std::tuple<Expr, std::string, Expr>> loads_;  ///< read, registers, condition
    std::optional<Edges> edges_;                              ///< that are being widened
};

}  // namespace

void widen_accesses(Launch &launch, const SymbolRanges &symbols) { Widener(launch, symbols).run(launch.body); }

}  // namespace tilewright
