#include "lowering/cpu/partial_fold.h"

#include <algorithm>
#include <map>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cpu/func_values.h"
#include "lowering/cpu/math/strict.h"
#include "lowering/cpu/reduction_loops.h"

namespace tilewright {

using Halide::Expr;
using Halide::Func;
namespace hi = Halide::Internal;

namespace {

constexpr std::int64_t largest_tree = 64;

Fold fold_of(const Stage &stage) {
    std::optional<Fold> fold = match_fold(stage.func);
    internal_assert(fold && fold->scan_axis < 0 && fold->combiner != Combiner::general, "stage {} is no reduction that can be taken apart",
                    stage.name());
    return *fold;
}

Expr strip_conversions(Expr e) {
    while (const auto *call = e.as<hi::Call>()) {
        const std::string_view name = math::primitive_name(call);
        if (name != "convert" || call->args[0].type() != call->type) {
            break;
        }
        e = call->args[0];
    }
    return e;
}

const LoopAxis *kept_loop(const ScheduledStage &scheduled) {
    const auto kept =
        std::find_if(scheduled.axes.begin(), scheduled.axes.end(), [](const LoopAxis &axis) { return axis.reduction && axis.is_loop; });
    return kept != scheduled.axes.end() ? &*kept : nullptr;
}

std::vector<Halide::Type> types_of(const std::vector<Expr> &values) {
    std::vector<Halide::Type> types;
    for (const Expr &value : values) {
        types.push_back(value.type());
    }
    return types;
}

}  // namespace

std::optional<std::pair<Expr, Expr>> product_of(const Fold &fold) {
    if (fold.scan_axis >= 0 || fold.combiner != Combiner::sum || fold.terms.size() != 1 || !fold.terms[0].type().is_float()) {
        return std::nullopt;
    }
    const Expr term = strip_conversions(fold.terms[0]);
    const auto *product = term.as<hi::Mul>();
    if (!product || hi::is_const(product->a) || hi::is_const(product->b)) {
        return std::nullopt;
    }
    return std::pair(product->a, product->b);
}

std::optional<std::pair<Expr, Expr>> product_of(const Stage &stage) {
    const std::optional<Fold> fold = match_fold(stage.func);
    return fold ? product_of(*fold) : std::nullopt;
}

Expr relaxed_product(const Expr &accumulator, const std::pair<Expr, Expr> &factors, Legalizer &legalizer) {
    return hi::Add::make(accumulator, hi::Mul::make(legalizer.mutate(factors.first), legalizer.mutate(factors.second)));
}

namespace {

/// The same value in other words: Halide does not see it, LLVM does and drops the choice between the two.
Expr equal_value(const Expr &value) {
    if (value.type().is_float()) {
        return (Strict(value) * 1.0).expr();
    }
    const Expr mask = hi::make_const(value.type(), 0x55);
    return (value ^ mask) ^ mask;
}

}  // namespace

std::vector<Expr> with_visible_dependencies(std::vector<Expr> values, const std::vector<Expr> &accumulator) {
    if (values.size() < 2 || accumulator[0].type().is_bool()) {
        return values;
    }
    const Expr first = hi::Reinterpret::make(Halide::Int(accumulator[0].type().bits()), accumulator[0]);
    for (std::size_t i = 1; i < values.size(); i++) {
        if (!values[i].type().is_bool()) {
            values[i] = hi::Select::make(first > hi::make_zero(first.type()), values[i], equal_value(values[i]));
        }
    }
    return values;
}

PartialLoops partial_loops(const ScheduledStage &scheduled, const ScheduledStage &owner_scheduled) {
    PartialLoops partial;
    for (const LoopAxis &axis : scheduled.axes) {
        if (axis.origin == LoopAxis::Origin::root && !axis.reduction) {
            partial.arguments.push_back(axis.name);
            partial.places.push_back(hi::Variable::make(Halide::Int(32), axis.name));
        }
    }
    ReductionLoops loops = reduction_loops(scheduled);
    partial.domain = loops.domain.defined() ? loops.domain : hi::ReductionDomain(std::vector<hi::ReductionVariable>{{"once", 0, 1}});
    // The loop that stayed in the owner is the partial stage's last argument; the others are its own axes.
    AxisValues values(owner_scheduled);
    for (std::size_t i = 0; i < owner_scheduled.axes.size(); i++) {
        const LoopAxis &axis = owner_scheduled.axes[i];
        if (axis.reduction && axis.children[0] < 0) {
            values.set(static_cast<int>(i), axis.is_loop ? partial.places.back() : loops.root_values.at(axis.name));
        }
    }
    for (std::size_t i = 0; i < owner_scheduled.axes.size(); i++) {
        const LoopAxis &axis = owner_scheduled.axes[i];
        if (axis.reduction && axis.origin == LoopAxis::Origin::root) {
            partial.reductions[axis.name] = values.value(static_cast<int>(i));
        }
    }
    for (const std::vector<Expr> &guards : {loops.guards, values.guards()}) {
        for (const Expr &guard : guards) {
            partial.domain.where(guard);
        }
    }
    return partial;
}

void define_partial(Func partial, const Stage &owner, PartialLoops loops, Legalizer &legalizer) {
    const Fold fold = fold_of(owner);
    const auto moved = [&](const Expr &e) { return replace_variables(loops.reductions, e); };
    const std::vector<Expr> neutral = identity(fold.combiner, types_of(fold.terms));
    partial.function().define(loops.arguments, legalize_all(legalizer, neutral));
    const std::vector<Expr> accumulator = values_at(partial.function(), loops.places);
    std::vector<Expr> next;
    if (const auto factors = product_of(owner)) {
        next = {relaxed_product(accumulator[0], {moved(factors->first), moved(factors->second)}, legalizer)};
    } else {
        std::vector<Expr> terms;
        for (const Expr &term : fold.terms) {
            terms.push_back(moved(term));
        }
        next = with_visible_dependencies(legalize_all(legalizer, combine(fold.combiner, accumulator, terms)), accumulator);
    }
    partial.function().define_update(loops.places, next, loops.domain);
}

std::vector<Expr> fold_parts(Combiner combiner, std::vector<std::vector<Expr>> parts) {
    // Halves are folded onto each other, as vector lanes would be.
    while (parts.size() > 1) {
        const std::size_t half = (parts.size() + 1) / 2;
        for (std::size_t i = 0; i + half < parts.size(); i++) {
            parts[i] = combine(combiner, parts[i], parts[i + half]);
        }
        parts.resize(half);
    }
    return parts.front();
}

std::optional<std::int64_t> parts_of_tree(const ScheduledStage &scheduled) {
    const LoopAxis *kept = kept_loop(scheduled);
    const std::optional<std::int64_t> count = kept ? kept->extent.constant() : std::nullopt;
    return count && *count >= 1 && *count <= largest_tree ? count : std::nullopt;
}

bool define_from_partial(Func func, const Stage &stage, const ScheduledStage &scheduled, const hi::Function &partial,
                         Legalizer &legalizer) {
    const Fold fold = fold_of(stage);
    const hi::Function source = stage.func.function();
    const std::vector<Expr> places = places_of(source);
    const LoopAxis *kept = kept_loop(scheduled);
    internal_assert(kept != nullptr, "stage {} kept no reduction loop", stage.name());
    const auto part = [&](const Expr &index) {
        std::vector<Expr> at = places;
        at.push_back(index);
        return values_at(partial, at);
    };
    if (const auto count = parts_of_tree(scheduled)) {
        std::vector<std::vector<Expr>> parts;
        for (int i = 0; i < *count; i++) {
            parts.push_back(part(i));
        }
        func.function().define(source.args(), legalize_all(legalizer, fold_parts(fold.combiner, std::move(parts))));
        return true;
    }
    func.function().define(source.args(), legalize_all(legalizer, fold.initial));
    const hi::ReductionDomain domain(std::vector<hi::ReductionVariable>{{kept->name, 0, to_halide(kept->extent)}});
    const std::vector<Expr> parts = part(hi::Variable::make(Halide::Int(32), kept->name, domain));
    const std::vector<Expr> accumulator = values_at(func.function(), places);
    func.function().define_update(
        places, with_visible_dependencies(legalize_all(legalizer, combine(fold.combiner, accumulator, parts)), accumulator), domain);
    return false;
}

}  // namespace tilewright
