#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

constexpr std::int64_t most_held_bytes = 384;  // of one thread's registers

/// A load inside of unrolled loops and guards that stand in a block.
struct Site {
    std::vector<const Statement *> around;  ///< loops and guards, outermost first
    VectorLoad load;
};

bool same_expressions(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return hi::graph_equal(x, y); });
}

bool same_surroundings(const std::vector<const Statement *> &a, const std::vector<const Statement *> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Statement *x, const Statement *y) {
        const auto *loop = x->as<For>(), *other_loop = y->as<For>();
        if (loop && other_loop) {
            return loop->variable == other_loop->variable;
        }
        const auto *guard = x->as<If>(), *other_guard = y->as<If>();
        return guard && other_guard && hi::graph_equal(guard->condition, other_guard->condition);
    });
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

    /// Loads of this block, and then those inside of its serial loops.
    void run(Block &block) {
        std::vector<Site> sites;
        for (const Statement &s : block) {
            std::vector<const Statement *> around;
            collect(s, around, sites);
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
            if (same.size() >= 2) {
                hold(sites, same, first);
                for (std::size_t j : same) {
                    taken[j] = true;
                }
            }
        }
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
        for (Statement &s : block) {
            inner_loops(s);
        }
    }

private:
    void inner_loops(Statement &s) {
        auto *loop = s.as<For>();
        if (loop && loop->level == Level::loop) {
            run(loop->body);
        } else if (Block *body = body_of(s)) {
            for (Statement &inner : *body) {
                inner_loops(inner);
            }
        }
    }

    void collect(const Statement &s, std::vector<const Statement *> &around, std::vector<Site> &sites) const {
        if (const auto *load = s.as<VectorLoad>()) {
            if (load->place.empty() && is_constant(load->indices) && !written_.count(load->buffer)) {
                sites.push_back({around, *load});
            }
            return;
        }
        const auto *loop = s.as<For>();
        const auto *guard = s.as<If>();
        if (loop ? loop->level != Level::unroll : !guard || !is_constant({guard->condition})) {
            return;
        }
        around.push_back(&s);
        for (const Statement &inner : *body_of(s)) {
            collect(inner, around, sites);
        }
        around.pop_back();
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
        Block body{Statement{load}};
        for (auto s = first.around.rbegin(); s != first.around.rend(); ++s) {
            Statement copy;
            if (const auto *loop = (*s)->as<For>()) {
                copy.node = For{loop->variable, loop->extent, loop->level, std::move(body)};
            } else {
                copy.node = If{(*s)->as<If>()->condition, std::move(body)};
            }
            body = {std::move(copy)};
        }
        loads.push_back(std::move(body[0]));
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
