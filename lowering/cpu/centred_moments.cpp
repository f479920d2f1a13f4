#include "lowering/cpu/centred_moments.h"

#include "lowering/cpu/func_values.h"
#include "lowering/cpu/math/strict.h"
#include "lowering/cpu/reduction_loops.h"

namespace tilewright {

using Halide::Expr;
using Halide::Func;
namespace hi = Halide::Internal;

namespace {

Extent row_length(const Stage &stage) { return product(stage.reduction_extents); }

Strict row_length(const Stage &stage, Halide::Type type) { return Strict(Halide::cast(type, to_halide(row_length(stage)))); }

/// The row's first value: the sums are of what lies near it.
Expr first_value(const Stage &stage, const Expr &term) {
    std::map<std::string, Expr> origin;
    for (const hi::ReductionVariable &variable : stage.func.function().update(0).schedule().rvars()) {
        origin[variable.var] = Expr(0);
    }
    return replace_variables(origin, term);
}

std::vector<std::vector<Expr>> parts_at(const Func &partial, const std::vector<Expr> &places, std::int64_t count) {
    std::vector<std::vector<Expr>> parts(count);
    for (int i = 0; i < count; i++) {
        std::vector<Expr> at = places;
        at.emplace_back(i);
        parts[i] = values_at(partial.function(), at);
    }
    return parts;
}

/// Sums of parts, legal as they are.
std::vector<Strict> summed(const Func &partial, const std::vector<Expr> &places, std::int64_t count) {
    std::vector<Strict> sums;
    for (const Expr &sum : fold_parts(Combiner::sum, parts_at(partial, places, count))) {
        sums.emplace_back(legalize(sum));
    }
    return sums;
}

/// Defines a Func of running sums, of `terms` as functions of the row's value.
template<typename Terms> void define_sums(Func func, PartialLoops loops, const Expr &value, Terms &&terms) {
    std::vector<Expr> zeros, next;
    const std::vector<Strict> added = terms(Strict(value));
    for (std::size_t i = 0; i < added.size(); i++) {
        zeros.push_back(hi::make_zero(value.type()));
    }
    func.function().define(loops.arguments, zeros);
    for (std::size_t i = 0; i < added.size(); i++) {
        next.push_back((Strict(hi::Call::make(func.function(), loops.places, static_cast<int>(i))) + added[i]).expr());
    }
    func.function().define_update(loops.places, next, loops.domain);
}

}  // namespace

bool has_centred_moments(const Stage &stage, const ScheduledStage &scheduled, const SymbolRanges &symbols) {
    const std::optional<Fold> fold = match_fold(stage.func);
    if (!fold || fold->combiner != Combiner::welford || fold->scan_axis >= 0 || !parts_of_tree(scheduled)) {
        return false;
    }
    const bool is_plain = hi::is_const_zero(fold->terms[1]) && hi::is_const_one(fold->terms[2]);
    return is_plain && row_length(stage).bounds(symbols).min >= 1;
}

void define_centred_moments(const CentredMoments &moments, const Stage &stage, const ScheduledStage &partial,
                            const ScheduledStage &scheduled, Legalizer &legalizer) {
    const Expr term = match_fold(stage.func)->terms[0];
    const std::vector<Expr> places = places_of(stage.func.function());
    const Strict first(legalizer.mutate(first_value(stage, term)));

    PartialLoops loops = partial_loops(partial, scheduled);
    Expr value = legalizer.mutate(replace_variables(loops.reductions, term));
    define_sums(moments.sums, loops, value, [&](const Strict &x) { return std::vector<Strict>{x - first}; });

    const Strict sum = summed(moments.sums, places, *parts_of_tree(scheduled))[0];
    Func centre = moments.centre;
    centre.function().define(stage.func.function().args(), {(first + sum / row_length(stage, sum.type())).expr()});

    loops = partial_loops(partial, scheduled);
    value = legalizer.mutate(replace_variables(loops.reductions, term));
    const Strict around(hi::Call::make(centre.function(), places, 0));
    define_sums(moments.partial, loops, value, [&](const Strict &x) {
        return std::vector<Strict>{x - around, (x - around) * (x - around)};
    });
}

void define_from_centred(Func func, const CentredMoments &moments, const Stage &stage, const ScheduledStage &scheduled) {
    const std::vector<Expr> places = places_of(stage.func.function());
    const std::vector<Strict> sums = summed(moments.partial, places, *parts_of_tree(scheduled));
    const Strict around(hi::Call::make(moments.centre.function(), places, 0));
    const Strict count = row_length(stage, around.type());
    // What the centre was off by is put right in both moments.
    const Strict off = sums[0] / count;
    const Strict squares = sums[1] - sums[0] * off;
    const Strict positive = select(squares < 0.0, 0.0, squares);
    func.function().define(stage.func.function().args(), {(around + off).expr(), positive.expr(), count.expr()});
}

}  // namespace tilewright
