// Reductions: folds over some of a tensor's dimensions.
#include <algorithm>
#include <cmath>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"
#include "lowering/translate/with_combiner.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// A tensor's dimensions, parted into those that stay and those that are folded.
struct Parted {
    TensorValue a;
    std::vector<int> dims;  ///< folded, ascending
    std::vector<Extent> kept, folded;

    Parted(TensorValue tensor, std::vector<int> reduced) : a(std::move(tensor)), dims(std::move(reduced)) {
        std::sort(dims.begin(), dims.end());
        for (int i = 0; i < a.rank(); i++) {
            (is_folded(i) ? folded : kept).push_back(a.size(i));
        }
    }
    bool is_folded(int dim) const { return std::binary_search(dims.begin(), dims.end(), dim); }

    Expr read(const Indices &arguments, const Indices &reduced) const {
        Indices at;
        std::size_t next_argument = 0, next_reduced = 0;
        for (int i = 0; i < a.rank(); i++) {
            at.push_back(is_folded(i) ? reduced.at(next_reduced++) : arguments.at(next_argument++));
        }
        return a(at);
    }
};

void fold(TranslationContext &context, const Node &node, Combiner combiner) {
    Parted parted(context.operand(node, "a"), TranslationContext::integers(node, "dims"));
    if (parted.dims.empty()) {  // a fold of one term is the term; 0 + -0.0 would lose the sign
        context.define_view(node, parted.a, TranslationContext::indices(node));
        return;
    }
    if (product(parted.folded) == Extent(1)) {
        const Expr term = parted.read(TranslationContext::indices(node), Indices(parted.folded.size(), Expr(0)));
        context.define_results(node, {combine(combiner, identity(combiner, {term.type()}), {term})[0]});
        return;
    }
    Halide::Func func = context.add_reduction(
        node, "", parted.kept, combiner, parted.folded,
        [&](const Indices &arguments, const Indices &reduced) { return std::vector<Expr>{parted.read(arguments, reduced)}; });
    context.define_results(node, {call(func, TranslationContext::indices(node))});
}

/// (value, index) of the extreme element along one dimension.
Halide::Func fold_with_index(TranslationContext &context, const Node &node, Combiner combiner) {
    Parted parted(context.operand(node, "a"), {TranslationContext::integer(node, "dim")});
    return context.add_reduction(node, "", parted.kept, combiner, parted.folded, [&](const Indices &arguments, const Indices &reduced) {
        return std::vector<Expr>{parted.read(arguments, reduced), math::convert(Halide::Int(64), reduced[0])};
    });
}

void arg_extreme(TranslationContext &context, const Node &node, Combiner combiner) {
    Halide::Func func = fold_with_index(context, node, combiner);
    context.define_results(node, {call(func, TranslationContext::indices(node), 1)});
}

void extreme_with_index(TranslationContext &context, const Node &node, Combiner combiner) {
    Halide::Func func = fold_with_index(context, node, combiner);
    Indices at = TranslationContext::indices(node);
    context.define_results(node, {call(func, at, 0), call(func, at, 1)});
}

/// Moments about a rough mean: a mean rounded to the size of the elements may be off by a good part of their spread, so that a second one
/// is taken of the distances from the first (the corrected two-pass algorithm; Chan, Golub, LeVeque 1983). Of a row of no elements both are
/// NaN; with no more elements than the correction, the sum of squares is divided by 0.
void var_mean(TranslationContext &context, const Node &node) {
    Parted parted(context.operand(node, "a"), TranslationContext::integers(node, "dims"));
    Halide::Type type = parted.a.type();
    double correction = TranslationContext::number(node, "correction");
    Extent elements = product(parted.folded);
    Expr zero = constant(type, 0.0), count = constant(type, elements);
    auto over_count = [&](const Expr &sum) { return elements == Extent(0) ? constant(type, std::nan("")) : math::div_true(sum, count); };
    auto fold = [&](std::string_view suffix, const std::function<Expr(const Expr &, const Indices &)> &term) {
        Halide::Func func = context.add_reduction(
            node, suffix, parted.kept, Combiner::sum, parted.folded,
            [&](const Indices &at, const Indices &reduced) { return std::vector<Expr>{term(parted.read(at, reduced), at)}; });
        return func;
    };
    Halide::Func sum = fold("sum", [](const Expr &x, const Indices &) { return x; });
    auto distance = [&](const Expr &x, const Indices &at) { return math::sub(x, over_count(call(sum, at))); };
    Halide::Func rest = fold("rest", distance);
    Halide::Func squares = fold("squares", [&](const Expr &x, const Indices &at) {
        Expr d = distance(x, at);
        return math::mul(d, d);
    });

    Indices at = TranslationContext::indices(node);
    Expr mean_of_rest = over_count(call(rest, at));
    Expr spread = math::sub(call(squares, at), math::mul(call(rest, at), mean_of_rest));
    spread = math::maximum(spread, zero);  // the difference of two equal sums may come out below
    auto known = elements.constant();
    double divisor = known ? static_cast<double>(*known) - correction : 0;
    Expr variance = !known        ? math::div_true(spread, math::maximum(math::sub(count, constant(type, correction)), zero))
                    : divisor > 0 ? math::div_true(spread, constant(type, divisor))
                                  : math::mul(spread, constant(type, INFINITY));  // over 0: NaN for 0, else infinite
    context.define_results(node, {variance, math::add(over_count(call(sum, at)), mean_of_rest)});
}

void logsumexp(TranslationContext &context, const Node &node) {
    Parted parted(context.operand(node, "a"), TranslationContext::integers(node, "dims"));
    Halide::Func func = context.add_reduction(node, "sums", parted.kept, Combiner::log_sum_exp, parted.folded,
                                              [&](const Indices &arguments, const Indices &reduced) {
                                                  return std::vector<Expr>{parted.read(arguments, reduced), constant(parted.a.type(), 1.0)};
                                              });
    Indices at = TranslationContext::indices(node);
    context.define_results(node, {finish_log_sum_exp(call(func, at, 0), call(func, at, 1))});
}

}  // namespace

void add_reductions(Table &table) {
    table["prims.sum"] = with(fold, Combiner::sum);
    table["prims.prod"] = with(fold, Combiner::product);
    table["prims.amin"] = with(fold, Combiner::minimum);
    table["prims.amax"] = with(fold, Combiner::maximum);
    table["prims.any"] = with(fold, Combiner::logical_or);
    table["prims.all"] = with(fold, Combiner::logical_and);
    table["prims.argmin"] = with(arg_extreme, Combiner::arg_minimum);
    table["prims.argmax"] = with(arg_extreme, Combiner::arg_maximum);
    table["prims.min_with_index"] = with(extreme_with_index, Combiner::arg_minimum);
    table["prims.max_with_index"] = with(extreme_with_index, Combiner::arg_maximum);
    table["prims.var_mean"] = var_mean;
    table["prims.logsumexp"] = logsumexp;
}

}  // namespace tilewright::translation
