#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/load_ahead.h"
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
    bool repeats = false;  ///< inside of a serial loop that it does not depend on
};

bool same_expressions(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return hi::graph_equal(x, y); });
}

bool same_load(const Site &a, const Site &b) {
    const auto same = [](const Expr &x, const Expr &y) { return x.defined() == y.defined() && (!x.defined() || hi::graph_equal(x, y)); };
    return a.load.buffer == b.load.buffer && a.load.lanes == b.load.lanes && a.load.aligned == b.load.aligned &&
           same_expressions(a.load.indices, b.load.indices) && same(a.load.condition, b.load.condition) &&
           same(a.load.inside, b.load.inside) && same_surroundings(a.around, b.around);
}

class HoldLoads {
public:
    HoldLoads(Launch &launch, std::map<std::string, Pipeline> pipelines) : launch_(launch), pipelines_(std::move(pipelines)) {
        visit_statements(launch.body, [&](const Statement &s) {
            for (const std::string &name : written_buffers(s)) {
                written_.insert(name);
            }
        });
    }

    /// Loads of this block that are made several times, or all of them, and then those inside of its serial loops. How many statements at
    /// its start load what is held.
    std::size_t run(Block &block, bool all = false, bool in_shared = false) {
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
            if (same.size() >= 2 || repeats || (all && !same.empty())) {
                in_shared &&goes_past_registers(launch_, sites[i].load) ? keep_in_shared(sites, same, first) : hold(sites, same, first);
                for (std::size_t j : same) {
                    taken[j] = true;
                }
            }
        }
        if (!shared_.empty() && in_shared) {
            std::transform(pipelines_.begin(), pipelines_.end(), std::inserter(made_, made_.end()), [](const auto &p) { return p.first; });
            first.push_back(call_of("copies_commit"));
            first.push_back(call_of("copies_wait", {"0"}));
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

    /// UserError for a pipeline that had nothing to fetch.
    void refuse_empty_pipelines() const {
        for (const auto &[loop, pipeline] : pipelines_) {
            if (!made_.count(loop)) {
                user_error(
                    "{}: the loop loads nothing that can go past the registers: vectors of 4, 8 or 16 bytes of a tensor that the launch "
                    "does not write, at places that depend on no other load; remove pipeline, or vectorize along the tensor's rows",
                    pipeline.place);
            }
        }
    }

private:
    void inner_loops(Block &block) {
        Block result;
        for (Statement &s : block) {
            auto *loop = s.as<For>();
            if (loop && loop->level == Level::loop) {
                const std::size_t loads = run(loop->body, pipelines_.count(loop->variable) > 0);
                Block before = load_ahead(*loop, loads);
                std::move(before.begin(), before.end(), std::back_inserter(result));
            } else if (Block *body = body_of(s)) {
                inner_loops(*body);
            }
            result.push_back(std::move(s));
        }
        block = std::move(result);
    }

    void collect(const Statement &s, std::vector<const Statement *> &around, std::vector<std::string> &serial,
                 std::vector<Site> &sites) const {
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
    std::vector<const Statement *> needed_around(const VectorLoad &load, const std::vector<const Statement *> &around,
                                                 const std::vector<std::string> &serial) const {
        std::vector<const Statement *> needed;
        std::copy_if(around.begin(), around.end(), std::back_inserter(needed),
                     [&](const Statement *s) { return !s->as<If>() || !depends(load, {s}, serial); });
        if (!load.aligned) {  // it reads nothing outside of the tensor, wherever it begins
            return depends(load, {}, serial) ? around : needed;
        }
        return load.condition.defined() || depends(load, {}, serial) || !lies_inside(load, needed) ? around : needed;
    }
    /// Whether the load is one of the tensor's own vectors where the guards hold.
    bool lies_inside(const VectorLoad &load, const std::vector<const Statement *> &guards) const {
        const Buffer &buffer = *launch_.find_buffer(load.buffer);
        for (std::size_t i = 0; i < load.indices.size(); ++i) {
            const auto *variable = load.indices[i].as<hi::Variable>();
            const bool whole = variable && std::any_of(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &axis) {
                                   return (axis.name == variable->name || axis.name + ".first" == variable->name) &&
                                          !axis.shift.defined() && axis.extent == buffer.extents[i] &&
                                          (axis.exact() || is_guarded(axis, guards));
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
        for (const Expr &condition : {load.condition, load.inside}) {
            if (condition.defined()) {
                expressions.push_back(condition);
            }
        }
        for (const Statement *s : around) {
            if (const auto *guard = s->as<If>()) {
                expressions.push_back(guard->condition);
            }
        }
        return std::any_of(expressions.begin(), expressions.end(), [&](const Expr &e) {
            return std::any_of(loops.begin(), loops.end(),
                               [&](const std::string &loop) { return !at_iteration(launch_, e, loop, Expr(0)).same_as(e); });
        });
    }

    /// Where threads wait for each other in the loop, an iteration's loads are issued during the one before, or as far ahead as a pipeline
    /// says. Gives what stands before the loop.
    Block load_ahead(For &loop, std::size_t loads) {
        bool waits = false;
        visit_statements(loop.body, [&](const Statement &s) {
            const auto *combine = s.as<Combine>();
            waits = waits || (combine && !combine->shared.empty());
        });
        const bool has_names = std::any_of(loop.body.begin(), loop.body.end(), [](const Statement &s) { return s.as<Let>() != nullptr; });
        if (const auto pipeline = pipelines_.find(loop.variable); pipeline != pipelines_.end() && !has_names && loads > 0) {
            Block before = load_ring(launch_, loop, loads, pipeline->second.stages);
            if (!before.empty()) {
                made_.insert(loop.variable);
            }
            return before;
        }
        if (!waits || has_names || loads == 0 || !loop.extent.is_constant()) {
            return {};
        }
        const std::int64_t bytes = loaded_bytes(launch_, loop, loads);
        if (held_bytes_ + bytes > most_held_bytes) {
            return {};
        }
        held_bytes_ += bytes;
        return load_next(launch_, loop, loads);
    }
    /// Nothing that is read changes during the launch.
    bool is_constant(const std::vector<Expr> &expressions) const {
        bool constant = true;
        for (const Expr &e : expressions) {
            visit_reads(e, [&](const hi::Call *call) { constant = constant && !written_.count(call->name); });
        }
        return constant;
    }

    /// How many vectors the loops around a load make, and which of them it is.
    static std::pair<std::int64_t, Expr> vectors_of(const Site &site) {
        std::int64_t count = 1;
        Expr place = 0;
        for (const Statement *s : site.around) {
            if (const auto *loop = s->as<For>()) {
                count *= loop->extent.value();
                place =
                    place * static_cast<int>(loop->extent.value()) + (loop->extent == Extent(1) ? Expr(0) : tile::variable(loop->variable));
            }
        }
        return {count, simplify_index(place, {})};
    }
    /// Each use reads the vector from the thread's own place in shared memory.
    void keep_in_shared(const std::vector<Site> &sites, const std::vector<std::size_t> &same, Block &loads) {
        const VectorLoad &load = sites[same[0]].load;
        const auto [count, place] = vectors_of(sites[same[0]]);
        Buffer held = *launch_.find_buffer(load.registers);
        held.extents = {count, load.lanes};
        const Buffer places = own_places(launch_, held, 1);
        const std::vector<Expr> own{0, place, tile::variable("thread.rank") * load.lanes};
        loads.push_back(wrapped(copy_of(load, places, own), sites[same[0]].around));
        for (std::size_t i : same) {
            shared_[sites[i].load.registers] = {places.name, own};
        }
    }
    void hold(const std::vector<Site> &sites, const std::vector<std::size_t> &same, Block &loads) {
        const Site &first = sites[same[0]];
        Buffer held = *launch_.find_buffer(first.load.registers);
        const auto [count, place] = vectors_of(first);
        const std::int64_t bytes = count * first.load.lanes * held.types[0].bytes();
        if (held_bytes_ + bytes > most_held_bytes) {
            return;
        }
        held_bytes_ += bytes;
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
            return found == owner_.held_.end() || op->args.size() != 1
                       ? hi::IRGraphMutator::visit(op)
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
        if (held_.empty() && shared_.empty()) {
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
        } else if (auto *load = s.as<VectorLoad>(); load && load->place.empty() && shared_.count(load->registers)) {
            std::tie(load->buffer, load->indices) = shared_.at(load->registers);
            load->inside = Expr();
        } else if (Block *body = body_of(s)) {
            std::erase_if(*body, [&](const Statement &inner) { return is_held(inner); });
            for (Statement &inner : *body) {
                replace(inner, reads);
            }
        }
    }

    Launch &launch_;
    const std::map<std::string, Pipeline> pipelines_;  ///< by loop
    std::set<std::string> made_;                       ///< loops whose pipelines are there
    std::set<std::string> written_;
    std::map<std::string, std::pair<Buffer, Expr>> held_;  ///< registers of a load -> those that hold it, and which of their vectors
    std::map<std::string, std::pair<std::string, std::vector<Expr>>> shared_;  ///< registers of a load -> its place in shared memory
    std::int64_t held_bytes_ = 0;
};

}  // namespace

void hold_loads(Launch &launch) {
    const std::map<std::string, Pipeline> pipelines = take_pipelines(launch);
    const bool in_shared = std::any_of(pipelines.begin(), pipelines.end(), [](const auto &p) { return p.second.stages == 1; });
    HoldLoads work(launch, pipelines);
    work.run(launch.body, false, in_shared);
    work.refuse_empty_pipelines();
}

}  // namespace tilewright
