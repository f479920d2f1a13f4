#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "dsl/algorithm/math.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/surroundings.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// A fold and the loops and guards around it.
struct Place {
    std::vector<const Statement *> around;
    Expr term;
};

bool is_float32(const Expr &e) { return e.type().is_float() && e.type().bits() == 32; }

/// The operands of a subtraction, however it is written.
std::optional<std::pair<Expr, Expr>> difference(const Expr &e) {
    if (const auto *op = e.as<hi::Sub>()) {
        return std::pair(op->a, op->b);
    }
    const auto *call = e.as<hi::Call>();
    const bool subtracts = call && (call->name == "strict_sub" || math::primitive_name(call) == "sub");
    return subtracts ? std::optional(std::pair(call->args[0], call->args[1])) : std::nullopt;
}

const hi::Call *buffer_read(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    return call && call->call_type == hi::Call::Halide ? call : nullptr;
}

bool is_call(const Expr &e, std::string_view name) {
    const auto *call = e.as<hi::Call>();
    return call && math::primitive_name(call) == name;
}

class BoundExponentials {
public:
    explicit BoundExponentials(Launch &launch) : launch_(launch) {
        std::vector<const Statement *> around;
        collect(launch.body, around);
    }

    void run() {
        if (maxima_.empty()) {
            return;
        }
        std::vector<const Statement *> around;
        rewrite(launch_.body, around);
        find_sums();
        if (!sums_.empty()) {
            divide(launch_.body);
        }
    }

private:
    void collect(const Block &block, std::vector<const Statement *> &around) {
        for (const Statement &s : block) {
            if (const auto *fold = s.as<tile::Fold>();
                fold && fold->place.empty() && fold->terms.size() == 1 && is_float32(fold->terms[0])) {
                const CombinerDefinition *combiner = launch_.find_combiner(fold->combiner);
                if (combiner->kind == Combiner::maximum) {
                    maxima_[fold->accumulator].push_back({around, fold->terms[0]});
                }
            } else if (const auto *combine = s.as<Combine>()) {
                groups_[combine->value].push_back(combine);
            }
            if (const Block *body = body_of(s)) {
                around.push_back(&s);
                collect(*body, around);
                around.pop_back();
            }
        }
    }

    /// The maximum that `argument` is the distance from, where one of the terms of that is met here; empty where it may be positive.
    std::string below(const Expr &argument, const std::vector<const Statement *> &around) const {
        const auto parts = difference(argument);
        const hi::Call *largest = parts ? buffer_read(parts->second) : nullptr;
        const auto found = largest && largest->args.empty() ? maxima_.find(largest->name) : maxima_.end();
        if (found == maxima_.end()) {
            return "";
        }
        const bool met = std::any_of(found->second.begin(), found->second.end(), [&](const Place &p) {
            return same_surroundings(p.around, around) && hi::graph_equal(p.term, parts->first);
        });
        return met ? found->first : "";
    }

    class Below : public hi::IRGraphMutator {
    public:
        Below(const BoundExponentials &owner, const std::vector<const Statement *> &around) : owner_(owner), around_(around) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            const Expr e = hi::IRGraphMutator::visit(op);
            const auto *call = e.as<hi::Call>();
            return is_float32(e) && is_call(e, "exp") && !owner_.below(call->args[0], around_).empty()
                       ? math::call(e.type(), "exp_below", call->args)
                       : e;
        }

    private:
        const BoundExponentials &owner_;
        const std::vector<const Statement *> &around_;
    };

    void rewrite(Block &block, std::vector<const Statement *> &around) {
        for (Statement &s : block) {
            if (auto *store = s.as<Store>()) {
                for (Expr &e : store->values) {
                    e = Below(*this, around).mutate(e);
                }
                if (is_call(store->values[0], "exp_below")) {
                    kept_[store->buffer].push_back(*store);
                } else {
                    overwritten_.insert(store->buffer);
                }
            } else if (auto *fold = s.as<tile::Fold>()) {
                note_sum(*fold, around);
                for (Expr &e : fold->terms) {
                    e = Below(*this, around).mutate(e);
                }
                const CombinerDefinition *combiner = launch_.find_combiner(fold->combiner);
                if (combiner->kind == Combiner::sum && fold->terms.size() == 1 && is_call(fold->terms[0], "exp_below")) {
                    fold->terms[0] = math::call(Halide::Float(32), "exp_term", fold->terms[0].as<hi::Call>()->args);
                }
            } else if (Block *body = body_of(s)) {
                around.push_back(&s);
                rewrite(*body, around);
                around.pop_back();
            }
        }
    }

    /// The maximum whose exponentials the fold sums up, directly or as they are kept in registers.
    void note_sum(const tile::Fold &fold, const std::vector<const Statement *> &around) {
        const CombinerDefinition *combiner = launch_.find_combiner(fold.combiner);
        if (combiner->kind != Combiner::sum || fold.terms.size() != 1 || !fold.place.empty()) {
            return;
        }
        Expr term = fold.terms[0];
        if (const hi::Call *read = buffer_read(term)) {
            const auto kept = kept_.find(read->name);
            if (kept != kept_.end() && kept->second.size() == 1 && !overwritten_.count(read->name) &&
                std::equal(read->args.begin(), read->args.end(), kept->second[0].indices.begin(), kept->second[0].indices.end(),
                           [](const Expr &a, const Expr &b) { return hi::graph_equal(a, b); })) {
                term = kept->second[0].values[0];
            }
        }
        const auto *exponential = is_call(term, "exp") || is_call(term, "exp_below") ? term.as<hi::Call>() : nullptr;
        terms_[fold.accumulator].push_back(exponential ? below(exponential->args[0], around) : "");
    }

    /// Sums of the exponentials of all distances from a maximum, over the same threads: one of them is exp(0).
    void find_sums() {
        for (const auto &[sum, maxima] : terms_) {
            const std::string &largest = maxima[0];
            const bool complete = !largest.empty() &&
                                  std::all_of(maxima.begin(), maxima.end(), [&](const std::string &m) { return m == largest; }) &&
                                  maxima.size() == maxima_.at(largest).size();
            if (complete && same_groups(sum, largest)) {
                sums_.insert(sum);
            }
        }
    }
    bool same_groups(const std::string &a, const std::string &b) const {
        const auto x = groups_.find(a), y = groups_.find(b);
        if (x == groups_.end() || y == groups_.end()) {
            return x == y;
        }
        const auto same = [](const Combine *c, const Combine *d) {
            return c->cluster_size == d->cluster_size &&
                   std::equal(c->groups.begin(), c->groups.end(), d->groups.begin(), d->groups.end(),
                              [](const Combine::Group &g, const Combine::Group &h) { return g.size == h.size && g.stride == h.stride; });
        };
        return std::equal(x->second.begin(), x->second.end(), y->second.begin(), y->second.end(), same);
    }

    class ByLarge : public hi::IRGraphMutator {
    public:
        explicit ByLarge(const BoundExponentials &owner) : owner_(owner) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            const Expr e = hi::IRGraphMutator::visit(op);
            const auto *call = e.as<hi::Call>();
            const bool divides = call && (call->name == "strict_div" || math::primitive_name(call) == "div_true");
            return divides ? quotient(e, call->args[0], call->args[1]) : e;
        }
        Expr visit(const hi::Div *op) override { return quotient(hi::IRGraphMutator::visit(op), mutate(op->a), mutate(op->b)); }

    private:
        Expr quotient(const Expr &e, const Expr &a, const Expr &b) const {
            const hi::Call *read = buffer_read(b);
            return is_float32(e) && read && owner_.sums_.count(read->name) ? math::call(e.type(), "div_by_sum", {a, b}) : e;
        }
        const BoundExponentials &owner_;
    };
    void divide(Block &block) {
        for (Statement &s : block) {
            if (auto *store = s.as<Store>()) {
                for (Expr &e : store->values) {
                    e = ByLarge(*this).mutate(e);
                }
            } else if (Block *body = body_of(s)) {
                divide(*body);
            }
        }
    }

    Launch &launch_;
    std::map<std::string, std::vector<Place>> maxima_;  ///< accumulator -> what it is the maximum of
    std::map<std::string, std::vector<const Combine *>> groups_;
    std::map<std::string, std::vector<Store>> kept_;         ///< registers of exponentials
    std::set<std::string> overwritten_;                      ///< registers that hold something else as well
    std::map<std::string, std::vector<std::string>> terms_;  ///< sum -> of each of its folds the maximum that its exponentials lie below
    std::set<std::string> sums_;                             ///< those with a term of exp(0)
};

}  // namespace

void bound_exponentials(Launch &launch) { BoundExponentials(launch).run(); }

}  // namespace tilewright
