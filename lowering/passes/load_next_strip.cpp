#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/surroundings.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

constexpr std::int64_t other_registers = 72;  ///< of a thread, beside its sums and what is loaded ahead
constexpr std::int64_t register_bytes = 4;
constexpr int strips_held = 2;  ///< the one that is computed, the one that is loaded

const Invoke *as_call(const Statement &s, std::string_view function) {
    const auto *call = s.as<Invoke>();
    return call && call->function == function ? call : nullptr;
}
bool holds_call(const Block &block, std::string_view function) {
    return std::any_of(block.begin(), block.end(), [&](const Statement &s) { return as_call(s, function); });
}
std::int64_t elements(const Buffer &buffer) {
    std::int64_t count = 1;
    for (const Extent &extent : buffer.extents) {
        count *= extent.value();
    }
    return count;
}

/// A load of a strip, in the unrolled loops and guards that it needs.
struct StripLoad {
    std::vector<const Statement *> around;  ///< outermost first, inside of the strip
    VectorLoad load;
    Buffer held;             ///< registers for its vectors of two strips
    std::int64_t count = 1;  ///< of a strip
    Expr place;              ///< of a vector in its strip
};

class LoadNextStrip {
public:
    explicit LoadNextStrip(Launch &launch) : launch_(launch) {
        visit_statements(launch.body, [&](const Statement &s) {
            for (const std::string &name : written_buffers(s)) {
                written_.insert(name);
            }
            if (const Invoke *call = as_call(s, "registers_increase")) {
                registers_ = std::stoll(call->template_arguments.front());
            }
        });
    }

    void run(Block &block) {
        const auto end = std::find_if(block.begin(), block.end(), [](const Statement &s) { return as_call(s, "multiply_end"); });
        if (end == block.end()) {
            for (Statement &s : block) {
                if (Block *body = body_of(s)) {
                    run(*body);
                }
            }
            return;
        }
        free_ = registers_ - other_registers;
        for (const std::string &sums : as_call(*end, "multiply_end")->writes) {
            free_ -= elements(*launch_.find_buffer(sums));
        }
        Block first = prepare_strips(block);
        block.insert(block.begin() + static_cast<std::ptrdiff_t>(start_of_product(block)), first.begin(), first.end());
    }

private:
    /// The loop over steps, or the wait for the warpgroup's turn before it.
    static std::size_t start_of_product(const Block &block) {
        const auto steps = std::find_if(block.begin(), block.end(), [](const Statement &s) { return s.as<For>(); });
        const auto place = static_cast<std::size_t>(steps - block.begin());
        return place > 0 && as_call(block[place - 1], "turn_wait") ? place - 1 : place;
    }

    /// Finds the loop over strips. Gives the loads of the first one that may stand anywhere before it.
    Block prepare_strips(Block &block) {
        for (std::size_t i = 0; i < block.size(); ++i) {
            auto *loop = block[i].as<For>();
            if (!loop || loop->level != Level::unroll || !loop->extent.is_constant()) {
                continue;
            }
            if (holds_call(loop->body, "stage_begin")) {
                return load_ahead(*loop);
            }
            Block first = prepare_strips(loop->body);
            if (first.empty() || loop->extent == Extent(1)) {
                return first;
            }
            // Each of several chunks of rows loads its own first strip.
            loop->body.insert(loop->body.begin(), first.begin(), first.end());
            return {};
        }
        return {};
    }

    Block load_ahead(For &strips) {
        std::vector<StripLoad> loads;
        std::vector<const Statement *> around;
        for (const Statement &s : strips.body) {
            collect(s, strips.variable, around, loads);
        }
        Block first, next;
        const Expr strip = variable(strips.variable);
        for (const StripLoad &load : loads) {
            *launch_.find_buffer(load.held.name) = load.held;
            first.push_back(statement_of(load, strips.variable, Expr(0)));
            next.push_back(statement_of(load, strips.variable, strip + 1));
        }
        if (loads.empty()) {
            return {};
        }
        for (Statement &s : strips.body) {
            use_held(s, strips.variable);
        }
        std::erase_if(launch_.buffers, [&](const Buffer &b) { return held_.count(b.name) && held_.at(b.name).held.name != b.name; });
        strips.body.insert(strips.body.begin(), Statement{If{strip + 1 < to_halide(strips.extent), std::move(next)}});
        return first;
    }

    void collect(const Statement &s, const std::string &strips, std::vector<const Statement *> &around, std::vector<StripLoad> &loads) {
        if (const auto *load = s.as<VectorLoad>()) {
            add(*load, strips, around, loads);
            return;
        }
        const auto *loop = s.as<For>();
        const auto *guard = s.as<If>();
        if (loop ? loop->level != Level::unroll || !loop->extent.is_constant() : !guard || !is_constant(guard->condition)) {
            return;
        }
        around.push_back(&s);
        for (const Statement &inner : *body_of(s)) {
            collect(inner, strips, around, loads);
        }
        around.pop_back();
    }

    void add(const VectorLoad &load, const std::string &strips, const std::vector<const Statement *> &around,
             std::vector<StripLoad> &loads) {
        const Buffer &from = *launch_.find_buffer(load.buffer);
        const bool constant = std::all_of(load.indices.begin(), load.indices.end(), [&](const Expr &e) { return is_constant(e); });
        const bool moves = std::any_of(load.indices.begin(), load.indices.end(), [&](const Expr &e) { return depends(e, strips); });
        if (from.memory != Memory::global || written_.count(load.buffer) || !load.place.empty() || load.condition.defined() || !constant ||
            !moves) {
            return;
        }
        StripLoad strip{needed(load, around), load, *launch_.find_buffer(load.registers), 1, {}};
        const auto known = std::find_if(loads.begin(), loads.end(), [&](const StripLoad &other) { return is_same(strip, other); });
        if (known != loads.end()) {
            held_[load.registers] = *known;
            return;
        }
        give_registers(strip);
        const std::int64_t registers = (elements(strip.held) * strip.held.types[0].bytes() + register_bytes - 1) / register_bytes;
        if (registers <= free_) {
            free_ -= registers;
            held_[load.registers] = strip;
            loads.push_back(std::move(strip));
        }
    }
    static void give_registers(StripLoad &strip) {
        Expr place = 0;
        for (const Statement *s : strip.around) {
            if (const auto *loop = s->as<For>()) {
                strip.count *= loop->extent.value();
                place = place * static_cast<int>(loop->extent.value()) + variable(loop->variable);
            }
        }
        strip.place = simplify_index(place, {});
        strip.held.extents = {strips_held * strip.count, strip.load.lanes};
        strip.held.strides = {strip.load.lanes, 1};
    }
    static bool is_same(const StripLoad &a, const StripLoad &b) {
        return a.load.buffer == b.load.buffer && a.load.lanes == b.load.lanes && same_surroundings(a.around, b.around) &&
               std::equal(a.load.indices.begin(), a.load.indices.end(), b.load.indices.begin(), b.load.indices.end(),
                          [](const Expr &x, const Expr &y) { return hi::graph_equal(x, y); });
    }

    /// All guards, and the loops that they or the load depend on.
    std::vector<const Statement *> needed(const VectorLoad &load, const std::vector<const Statement *> &around) const {
        std::vector<Expr> expressions = load.indices;
        for (const Statement *s : around) {
            if (const auto *guard = s->as<If>()) {
                expressions.push_back(guard->condition);
            }
        }
        std::vector<const Statement *> result;
        std::copy_if(around.begin(), around.end(), std::back_inserter(result), [&](const Statement *s) {
            const auto *loop = s->as<For>();
            return !loop || std::any_of(expressions.begin(), expressions.end(), [&](const Expr &e) { return depends(e, loop->variable); });
        });
        return result;
    }
    bool depends(const Expr &e, const std::string &loop) const { return !at_iteration(launch_, e, loop, Expr(0)).same_as(e); }
    /// Nothing that is read changes during the launch.
    bool is_constant(const Expr &e) const {
        bool constant = true;
        visit_reads(e, [&](const hi::Call *call) { constant = constant && !written_.count(call->name); });
        return constant;
    }

    static Expr place_of(const StripLoad &load, const Expr &strip) {
        return simplify_index(strip % strips_held * static_cast<int>(load.count) + load.place, {});
    }
    /// The load for that strip.
    Statement statement_of(const StripLoad &strip, const std::string &strips, const Expr &at) const {
        VectorLoad load = strip.load;
        for (Expr &index : load.indices) {
            index = at_iteration(launch_, index, strips, at);
        }
        load.place = {place_of(strip, at)};
        return wrapped(Statement{std::move(load)}, strip.around,
                       [&](const Expr &condition) { return at_iteration(launch_, condition, strips, at); });
    }

    class Reads : public hi::IRGraphMutator {
    public:
        Reads(const LoadNextStrip &owner, const std::string &strips) : owner_(owner), strips_(strips) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            const auto found = op->call_type == hi::Call::Halide ? owner_.held_.find(op->name) : owner_.held_.end();
            if (found == owner_.held_.end() || op->args.size() != 1) {
                return hi::IRGraphMutator::visit(op);
            }
            return tile::read(found->second.held, {place_of(found->second, variable(strips_)), mutate(op->args[0])});
        }

    private:
        const LoadNextStrip &owner_;
        const std::string &strips_;
    };
    void use_held(Statement &s, const std::string &strips) const {
        if (auto *store = s.as<Store>()) {
            Reads reads(*this, strips);
            for (Expr &value : store->values) {
                value = reads.mutate(value);
            }
        } else if (Block *body = body_of(s)) {
            std::erase_if(*body, [&](const Statement &inner) {
                const auto *load = inner.as<VectorLoad>();
                return load && held_.count(load->registers);
            });
            for (Statement &inner : *body) {
                use_held(inner, strips);
            }
        }
    }

    Launch &launch_;
    std::set<std::string> written_;
    std::int64_t registers_ = 0;             ///< of a thread that multiplies
    std::int64_t free_ = 0;                  ///< of those, for loads
    std::map<std::string, StripLoad> held_;  ///< by the registers that the strip's own load had
};

}  // namespace

void load_next_strip(Launch &launch) { LoadNextStrip(launch).run(launch.body); }

}  // namespace tilewright
