// Scans: every prefix of a dimension, folded.
#include "dsl/algorithm/math.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"
#include "lowering/translate/with_combiner.h"

namespace tilewright::translation {

using Halide::Expr;

namespace {

Halide::Func add_scan(TranslationContext &context, const Node &node, std::string_view suffix, Combiner combiner,
                      const std::vector<Expr> &terms, int dim, const TensorMeta &meta) {
    Halide::Func func = context.make_func(node, suffix);
    const Extent &extent = meta.sizes.at(static_cast<std::size_t>(dim));
    define_scan(func, argument_vars(meta.rank()), dim, to_halide(extent), combiner, terms);
    context.add_stage(node, func, meta.sizes, {extent});
    return func;
}

void scan(TranslationContext &context, const Node &node, Combiner combiner) {
    TensorValue a = context.operand(node, "a");
    Halide::Func func = add_scan(context, node, "", combiner, {a.element()}, TranslationContext::integer(node, "dim"), a.meta());
    context.define_results(node, {call(func, TranslationContext::indices(node))});
}

/// (values, indices). Of equal values the scan keeps the last, as PyTorch does, whereas the combiner keeps the smaller index: it is
/// given the indices negated.
void scan_with_index(TranslationContext &context, const Node &node, Combiner combiner) {
    TensorValue a = context.operand(node, "a");
    int dim = TranslationContext::integer(node, "dim");
    Indices at = TranslationContext::indices(node);
    Expr place = math::neg(math::convert(Halide::Int(64), at.at(static_cast<std::size_t>(dim))));
    Halide::Func func = add_scan(context, node, "scan", combiner, {a.element(), place}, dim, a.meta());
    context.define_results(node, {call(func, at, 0), math::neg(call(func, at, 1))});
}

void logcumsumexp(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a");
    Halide::Func func = add_scan(context, node, "sums", Combiner::log_sum_exp, {a.element(), constant(a.type(), 1.0)},
                                 TranslationContext::integer(node, "dim"), a.meta());
    Indices at = TranslationContext::indices(node);
    context.define_results(node, {finish_log_sum_exp(call(func, at, 0), call(func, at, 1))});
}

}  // namespace

void add_scans(Table &table) {
    table["prims.cumsum"] = with(scan, Combiner::sum);
    table["prims.cumprod"] = with(scan, Combiner::product);
    table["prims.cummax"] = with(scan_with_index, Combiner::arg_maximum);
    table["prims.cummin"] = with(scan_with_index, Combiner::arg_minimum);
    table["prims.logcumsumexp"] = logcumsumexp;
}

}  // namespace tilewright::translation
