#include <algorithm>
#include <iterator>
#include <map>
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

constexpr std::int64_t most_held_bytes = 448;  // of one thread's registers

/// A load inside of unrolled loops and guards that stand in a block.
struct Site {
    std::vector<const Statement *> around;  ///< loops and guards, outermost first
    VectorLoad load;
    bool repeats = false;                   ///< inside of a serial loop that it does not depend on
};

bool same_expressions(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return hi::graph_equal(x, y); });
}

bool same_load(const Site &a, const Site &b) {
    const Expr &x = a.load.condition, &y = b.load.condition;
    return a.load.buffer == b.load.buffer && a.load.lanes == b.load.lanes && same_expressions(a.load.indices, b.load.indices) &&
           x.defined() == y.defined() && (!x.defined() || hi::graph_equal(x, y)) && same_surroundings(a.around, b.around);
}

class HoldLoads {
public:
    explicit HoldLoads(Launch &launch) : launch_(launch) {
        visit_statements(launch.body, [&](const Statement &s) {
            for (const std::string &name : written_buffers(s)) {
                written_.insert(name);
            }
        });
    }

    /// Loads of this block, and then those inside of its serial loops. How many statements at its start load what is held.
    std::size_t run(Block &block) {
        std::vector<Site> sites;
        for (const Statement &s : block) {
            std::vector<const Statement *> around;
            std::vector<std::string> serial;
            collect(s, around, serial, sites);
        }
        Block first;  // all of them at once, so that none waits for what lies between
        std::vector<bool> taken(sites.size());
        for (std::size_t i = 0; i < sites.size(); ++i) {
            std::vector<std::size_t> same;
            for (std::size_t j = i; !taken[i] && j < sites.size(); ++j) {
                if (!taken[j] && same_load(sites[i], sites[j])) {
                    same.push_back(j);
                }
            }
            const bool repeats = std::any_of(same.begin(), same.end(), [&](std::size_t j) { return sites[j].repeats; });
            if (same.size() >= 2 || repeats) {
                hold(sites, same, first);
                for (std::size_t j : same) {
                    taken[j] = true;
                }
            }
        }
        const std::size_t loads = first.size();
        Reads reads(*this);
        Block result;
        for (Statement &s : block) {
            if (!s.as<Let>()) {
                std::move(first.begin(), first.end(), std::back_inserter(result));
                first.clear();
            }
            if (!is_held(s)) {
                replace(s, reads);
                result.push_back(std::move(s));
            }
        }
        block = std::move(result);
        inner_loops(block);
        return loads;
    }

private:
    void inner_loops(Block &block) {
        Block result;
        for (Statement &s : block) {
            auto *loop = s.as<For>();
            if (loop && loop->level == Level::loop) {
                const std::size_t loads = run(loop->body);
                Block before = load_ahead(*loop, loads);
                std::move(before.begin(), before.end(), std::back_inserter(result));
            } else if (Block *body = body_of(s)) {
                inner_loops(*body);
            }
            result.push_back(std::move(s));
        }
        block = std::move(result);
    }

    void collect(const Statement &s, std::vector<const Statement *> &around, std::vector<std::string> &serial, std::vector<Site> &sites) const {
        if (const auto *load = s.as<VectorLoad>()) {
            const std::vector<const Statement *> needed = needed_around(*load, around, serial);
            if (load->place.empty() && is_constant(load->indices) && !written_.count(load->buffer) && !depends(*load, needed, serial)) {
                sites.push_back({needed, *load, !serial.empty()});
            }
            return;
        }
        const auto *loop = s.as<For>();
        const auto *guard = s.as<If>();
        if (loop ? loop->level == Level::vector : !guard || !is_constant({guard->condition})) {
            return;
        }
        if (loop && loop->level == Level::loop) {
            std::vector<std::string> changing = serial;
            changing.push_back(loop->variable);
            visit_statements(loop->body, [&](const Statement &inner) {
                if (const auto *let = inner.as<Let>()) {
                    changing.push_back(let->name);
                }
            });
            for (const Statement &inner : loop->body) {
                collect(inner, around, changing, sites);
            }
            return;
        }
        around.push_back(&s);
        for (const Statement &inner : *body_of(s)) {
            collect(inner, around, serial, sites);
        }
        around.pop_back();
    }
    /// What must hold for the load: without the guards that change with a serial loop, where it would be made there for every iteration.
    std::vector<const Statement *> needed_around(const VectorLoad &load, const std::vector<const Statement *> &around, const std::vector<std::string> &serial) const {
        std::vector<const Statement *> needed;
        std::copy_if(around.begin(), around.end(), std::back_inserter(needed), [&](const Statement *s) { return !s->as<If>() || !depends(load, {s}, serial); });
        return load.condition.defined() || depends(load, {}, serial) || !lies_inside(load, needed) ? around : needed;
    }
    /// Whether the load is one of the tensor's own vectors where the guards hold.
    bool lies_inside(const VectorLoad &load, const std::vector<const Statement *> &guards) const {
        const Buffer &buffer = *launch_.find_buffer(load.buffer);
        for (std::size_t i = 0; i < load.indices.size(); ++i) {
            const auto *variable = load.indices[i].as<hi::Variable>();
            const bool whole = variable && std::any_of(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &axis) {
                return (axis.name == variable->name || axis.name + ".first" == variable->name) && !axis.shift.defined() &&
                       axis.extent == buffer.extents[i] && (axis.exact() || is_guarded(axis, guards));
            });
            if (!whole && !hi::is_const_zero(load.indices[i])) {
                return false;
            }
        }
        return true;
    }
    static bool is_guarded(const Axis &axis, const std::vector<const Statement *> &guards) {
        const Expr inside = tile::variable(axis.name + ".first") < to_halide(axis.extent);
        return std::any_of(guards.begin(), guards.end(), [&](const Statement *s) {
            const auto *guard = s->as<If>();
            return guard && hi::graph_equal(guard->condition, inside);
        });
    }
    bool depends(const VectorLoad &load, const std::vector<const Statement *> &around, const std::vector<std::string> &loops) const {
        std::vector<Expr> expressions = load.indices;
        if (load.condition.defined()) {
            expressions.push_back(load.condition);
        }
        for (const Statement *s : around) {
            if (const auto *guard = s->as<If>()) {
                expressions.push_back(guard->condition);
            }
        }
        return std::any_of(expressions.begin(), expressions.end(), [&](const Expr &e) {
            return std::any_of(loops.begin(), loops.end(), [&](const std::string &loop) { return !at_iteration(launch_, e, loop, Expr(0)).same_as(e); });
        });
    }

    /// Where threads wait for each other in the loop, an iteration's loads are issued during the one before. Gives what stands before the loop.
    Block load_ahead(For &loop, std::size_t loads) {
        bool waits = false;
        visit_statements(loop.body, [&](const Statement &s) {
            const auto *combine = s.as<Combine>();
            waits = waits || (combine && !combine->shared.empty());
        });
        const bool has_names = std::any_of(loop.body.begin(), loop.body.end(), [](const Statement &s) { return s.as<Let>() != nullptr; });
        if (!waits || has_names || loads == 0 || !loop.extent.is_constant()) {
            return {};
        }
        std::int64_t bytes = 0;
        for (std::size_t i = 0; i < loads; ++i) {
            visit_statements({loop.body[i]}, [&](const Statement &s) {
                if (const auto *load = s.as<VectorLoad>()) {
                    const Buffer &held = *launch_.find_buffer(load->registers);
                    bytes += held.extents[0].value() * held.extents[1].value() * held.types[0].bytes();
                }
            });
        }
        if (held_bytes_ + bytes > most_held_bytes) {
            return {};
        }
        held_bytes_ += bytes;
        Block before, take, ahead;
        for (std::size_t i = 0; i < loads; ++i) {
            take.push_back(copy_of(loop.body[i]));
            before.push_back(load_at(loop.body[i], loop.variable, Expr(0)));
            ahead.push_back(load_at(loop.body[i], loop.variable, tile::variable(loop.variable) + 1));
        }
        Block body = std::move(take);
        body.push_back({If{tile::variable(loop.variable) + 1 < to_halide(loop.extent), std::move(ahead)}});
        std::move(loop.body.begin() + static_cast<std::ptrdiff_t>(loads), loop.body.end(), std::back_inserter(body));
        loop.body = std::move(body);
        return before;
    }
    static std::string next_name(const std::string &registers) { return registers.substr(0, registers.size() - 4) + "_next.vec"; }
    /// The statement with its loads going to the registers of the next iteration.
    Statement load_at(const Statement &s, const std::string &loop, const Expr &iteration) {
        Statement result = s;
        if (auto *load = result.as<VectorLoad>()) {
            Buffer next = *launch_.find_buffer(load->registers);
            next.name = load->registers = next_name(load->registers);
            if (!launch_.find_buffer(next.name)) {
                launch_.buffers.push_back(next);
            }
            for (Expr &e : load->indices) {
                e = at_iteration(launch_, e, loop, iteration);
            }
            load->condition = load->condition.defined() ? at_iteration(launch_, load->condition, loop, iteration) : Expr();
        } else if (auto *guard = result.as<If>()) {
            guard->condition = at_iteration(launch_, guard->condition, loop, iteration);
        }
        if (Block *body = body_of(result)) {
            for (Statement &inner : *body) {
                inner = load_at(inner, loop, iteration);
            }
        }
        return result;
    }
    /// In place of its loads, the statement takes what was loaded ahead.
    Statement copy_of(const Statement &s) const {
        Statement result = s;
        if (const auto *load = s.as<VectorLoad>()) {
            const Buffer &held = *launch_.find_buffer(load->registers);
            Buffer next = held;
            next.name = next_name(held.name);
            const std::string lane = "copied_lane";
            const std::vector<Expr> place{load->place[0], tile::variable(lane)};
            return {For{lane, load->lanes, Level::unroll, {Statement{Store{held.name, place, {tile::read(next, place)}}}}}};
        }
        if (Block *body = body_of(result)) {
            for (Statement &inner : *body) {
                inner = copy_of(inner);
            }
        }
        return result;
    }
    /// Nothing that is read changes during the launch.
    bool is_constant(const std::vector<Expr> &expressions) const {
        bool constant = true;
        for (const Expr &e : expressions) {
            visit_reads(e, [&](const hi::Call *call) { constant = constant && !written_.count(call->name); });
        }
        return constant;
    }

    void hold(const std::vector<Site> &sites, const std::vector<std::size_t> &same, Block &loads) {
        const Site &first = sites[same[0]];
        Buffer held = *launch_.find_buffer(first.load.registers);
        std::int64_t count = 1;
        Expr place = 0;
        for (const Statement *s : first.around) {
            if (const auto *loop = s->as<For>()) {
                count *= loop->extent.value();
                place = place * static_cast<int>(loop->extent.value()) + (loop->extent == Extent(1) ? Expr(0) : tile::variable(loop->variable));
            }
        }
        const std::int64_t bytes = count * first.load.lanes * held.types[0].bytes();
        if (held_bytes_ + bytes > most_held_bytes) {
            return;
        }
        held_bytes_ += bytes;
        place = simplify_index(place, {});
        held.extents = {count, first.load.lanes};
        held.strides = {first.load.lanes, 1};
        *launch_.find_buffer(held.name) = held;
        VectorLoad load = first.load;
        load.place = {place};
        loads.push_back(wrapped(Statement{load}, first.around));
        for (std::size_t i : same) {
            held_[sites[i].load.registers] = {held, place};
            if (sites[i].load.registers != held.name) {
                std::erase_if(launch_.buffers, [&](const Buffer &b) { return b.name == sites[i].load.registers; });
            }
        }
    }

    class Reads : public hi::IRGraphMutator {
    public:
        explicit Reads(const HoldLoads &owner) : owner_(owner) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            const auto found = op->call_type == hi::Call::Halide ? owner_.held_.find(op->name) : owner_.held_.end();
            return found == owner_.held_.end() || op->args.size() != 1 ? hi::IRGraphMutator::visit(op)
                                                                      : tile::read(found->second.first, {found->second.second, mutate(op->args[0])});
        }

    private:
        const HoldLoads &owner_;
    };
    bool is_held(const Statement &s) const {
        const auto *load = s.as<VectorLoad>();
        return load && load->place.empty() && held_.count(load->registers);
    }
    void replace(Statement &s, Reads &reads) const {
        if (held_.empty()) {
            return;
        }
        const auto rewrite = [&](std::vector<Expr> &expressions) {
            for (Expr &e : expressions) {
                e = reads.mutate(e);
            }
        };
        if (auto *store = s.as<Store>()) {
            rewrite(store->values);
        } else if (auto *fold = s.as<tile::Fold>()) {
            rewrite(fold->terms);
        } else if (Block *body = body_of(s)) {
            std::erase_if(*body, [&](const Statement &inner) { return is_held(inner); });
            for (Statement &inner : *body) {
                replace(inner, reads);
            }
        }
    }

    Launch &launch_;
    std::set<std::string> written_;
    std::map<std::string, std::pair<Buffer, Expr>> held_;  ///< registers of a load -> those that hold it, and which of their vectors
    std::int64_t held_bytes_ = 0;
};

}  // namespace

void hold_loads(Launch &launch) { HoldLoads(launch).run(launch.body); }

}  // namespace tilewright
