// Choices by place: what a condition says of the indices under it, and where an unrolled loop's step alone decides it.
#include <algorithm>
#include <optional>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/assume_conditions.h"
#include "lowering/passes/launch_ranges.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

constexpr std::int64_t most_steps = 64;

/// Steps [first, last] of a loop.
struct Steps {
    std::int64_t first = 0, last = -1;
    bool empty() const { return last < first; }
    std::int64_t size() const { return last - first + 1; }
};

class Settler {
public:
    Settler(Launch &launch, const SymbolRanges &symbols) : launch_(launch), ranges_(launch_ranges(launch, symbols)) {}

    void run(Block &block) {
        for (Statement &s : block) {
            auto *loop = s.as<For>();
            const bool unrolled = loop && loop->level != Level::loop && loop->extent.is_constant() && loop->extent.value() > 1 &&
                                  loop->extent.value() <= most_steps;
            if (unrolled) {
                around_.push_back(loop);
                ranges_.try_emplace(loop->variable, SymbolRange{0, loop->extent.value() - 1});
            }
            if (Block *body = body_of(s)) {
                run(*body);
            }
            if (unrolled) {
                around_.pop_back();
            }
            if (auto *store = s.as<Store>()) {
                settle(store->values);
            } else if (auto *fold = s.as<tile::Fold>()) {
                settle(fold->terms);
            } else if (auto *guard = s.as<If>(); guard && !contains_read(guard->condition)) {
                guard->condition = settled(guard->condition);
            }
        }
    }

private:
    class Choices : public hi::IRGraphMutator {
    public:
        explicit Choices(const Settler &owner) : owner_(owner) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Select *op) override {
            return hi::Select::make(owner_.settled(op->condition), mutate(op->true_value), mutate(op->false_value));
        }

    private:
        const Settler &owner_;
    };

    void settle(std::vector<Expr> &values) const {
        for (Expr &e : values) {
            e = assume_conditions(e, ranges_);
            if (!around_.empty()) {
                e = Choices(*this).mutate(e);
            }
        }
    }

    Expr settled(const Expr &condition) const {
        if (const auto *both = condition.as<hi::And>()) {
            const Expr a = settled(both->a), b = settled(both->b);
            return a.same_as(both->a) && b.same_as(both->b) ? condition : a && b;
        }
        Expr result = condition;
        for (const For *loop : around_) {
            const Steps steps = steps_where(condition, *loop);
            if (!steps.empty() && steps.size() < loop->extent.value()) {
                result = within(steps, *loop) || result;
            }
        }
        return result;
    }
    static Expr within(const Steps &steps, const For &loop) {
        const Expr step = tile::variable(loop.variable), first(static_cast<int>(steps.first)), last(static_cast<int>(steps.last));
        return steps.first == 0 ? step <= last : steps.last == loop.extent.value() - 1 ? step >= first : step >= first && step <= last;
    }

    /// The longest run of steps that decide the condition whatever else holds.
    Steps steps_where(const Expr &condition, const For &loop) const {
        const Axis *axis = axis_with(loop.variable);
        if (!mentions(condition, loop.variable) && !(axis && mentions(condition, axis->name))) {
            return {};
        }
        Steps longest, run;
        for (std::int64_t step = 0; step < loop.extent.value(); ++step) {
            if (!always(condition, ranges_at(loop, axis, step))) {
                continue;
            }
            run = run.empty() || run.last != step - 1 ? Steps{step, step} : Steps{run.first, step};
            longest = run.size() > longest.size() ? run : longest;
        }
        return longest;
    }
    const Axis *axis_with(const std::string &leaf) const {
        const auto found = std::find_if(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &axis) {
            return std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const Leaf &l) { return l.name == leaf; });
        });
        return found == launch_.axes.end() ? nullptr : &*found;
    }
    VariableRanges ranges_at(const For &loop, const Axis *axis, std::int64_t step) const {
        VariableRanges ranges = ranges_;
        ranges[loop.variable] = {step, step};
        if (!axis || axis->shift.defined()) {
            return ranges;
        }
        SymbolRange whole{0, 0};
        for (const Leaf &leaf : axis->leaves) {
            const auto range = range_of(tile::variable(leaf.name) * to_halide(leaf.stride), ranges);
            if (!range) {
                return ranges;
            }
            whole = SymbolRange{whole.min + range->min, whole.max + range->max};
        }
        SymbolRange &known = ranges[axis->name];
        known = SymbolRange{std::max(known.min, whole.min), std::min(known.max, whole.max)};
        return ranges;
    }

    static bool always(const Expr &condition, const VariableRanges &ranges) {
        const auto difference = [&](const auto *op) -> std::optional<SymbolRange> {
            return op && op->a.type() == Halide::Int(32) ? range_of(simplify_index(op->a - op->b, ranges), ranges) : std::nullopt;
        };
        if (const auto d = difference(condition.as<hi::LT>())) {
            return d->max < 0;
        }
        if (const auto d = difference(condition.as<hi::LE>())) {
            return d->max <= 0;
        }
        if (const auto d = difference(condition.as<hi::GT>())) {
            return d->min > 0;
        }
        const auto d = difference(condition.as<hi::GE>());
        return d && d->min >= 0;
    }

    Launch &launch_;
    VariableRanges ranges_;
    std::vector<const For *> around_;  ///< unrolled loops
};

}  // namespace

void settle_conditions(Launch &launch, const SymbolRanges &symbols) { Settler(launch, symbols).run(launch.body); }

}  // namespace tilewright
