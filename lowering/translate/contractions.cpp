#include "lowering/translate/contractions.h"

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

using Halide::Expr;

Halide::Type accumulation_type(Halide::Type type) {
    if ((type.is_float() || type.is_bfloat()) && type.bits() == 16) {
        return Halide::Float(32);
    }
    return type == Halide::Int(8) ? Halide::Int(32) : type;
}

void define_sum_of_products(TranslationContext &context, const Node &node, Halide::Type accumulation, const std::vector<Extent> &reduction,
                            const std::function<Expr(const Indices &, const Indices &)> &term) {
    const TensorMeta &meta = TranslationContext::result_meta(node);
    Halide::Type type = to_halide(meta.dtype);
    Halide::Func sums = context.add_reduction(
        node, type == accumulation ? "" : "sums", meta.sizes, Combiner::sum, reduction,
        [&](const Indices &arguments, const Indices &reduced) { return std::vector<Expr>{term(arguments, reduced)}; });
    context.define_results(node, {math::convert(type, call(sums, TranslationContext::indices(node)))});
}

Expr both(const Expr &a, const Expr &b) { return !a.defined() ? b : !b.defined() ? a : a && b; }

WindowPlace window_place(const Expr &output, const Extent &outputs, const Expr &tap, const Extent &taps, const Extent &size, int stride,
                         int padding, int dilation) {
    auto scaled = [](const Expr &e, int factor) { return factor == 1 ? e : e * factor; };
    Expr place = scaled(output, stride) + scaled(tap, dilation);
    WindowPlace result;
    if (padding != 0) {
        place = place - padding;
    }
    result.clamped = place;
    if (padding > 0) {
        result.is_inside = place >= 0;
        result.clamped = max(result.clamped, 0);
    }
    Extent last = (outputs - 1) * stride + (taps - 1) * dilation - padding;
    auto beyond = (last - size).constant();
    if (!beyond || *beyond >= 0) {
        result.is_inside = both(result.is_inside, place < to_halide(size));
        result.clamped = min(result.clamped, to_halide(size) - 1);
    }
    return result;
}

namespace {

/// [B…, M, K] times [B…, K, N]
void dot(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a"), b = context.operand(node, "b");
    Halide::Type type = accumulation_type(a.type());
    if (a.size(a.rank() - 1) == Extent(1)) {  // an outer product; adding to 0 turns -0.0 into 0.0
        Halide::Type result = to_halide(TranslationContext::result_meta(node).dtype);
        context.define_pointwise(node, [&](const Indices &at) {
            Indices left(at.begin(), at.end() - 1), right(at.begin(), at.end() - 2);
            left.push_back(0);
            right.push_back(0);
            right.push_back(at.back());
            Expr product = math::mul(math::convert(type, a(left)), math::convert(type, b(right)));
            return math::convert(result, math::add(product, constant(type, std::int64_t{0})));
        });
        return;
    }
    define_sum_of_products(context, node, type, {a.size(a.rank() - 1)}, [&](const Indices &arguments, const Indices &reduced) {
        Indices left(arguments.begin(), arguments.end() - 1), right(arguments.begin(), arguments.end() - 2);
        left.push_back(reduced[0]);
        right.push_back(reduced[0]);
        right.push_back(arguments.back());
        return math::mul(math::convert(type, a(left)), math::convert(type, b(right)));
    });
}

}  // namespace

void add_contractions(Table &table) { table["tw.dot"] = dot; }

}  // namespace tilewright::translation
