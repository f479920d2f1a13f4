// Concatenation and padding: a choice among tensors by place. A read stays inside its tensor even where it is not chosen.
#include "dsl/error.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

void cat(TranslationContext &context, const Node &node) {
    struct Part {
        TensorValue tensor;
        Extent begin, end;
    };
    auto dim = static_cast<std::size_t>(TranslationContext::integer(node, "dim"));
    std::vector<Part> parts;
    Extent end = 0;
    for (TensorValue &tensor : context.operands(node, "tensors")) {
        Extent begin = end;
        end = end + tensor.size(static_cast<int>(dim));
        if (begin != end) {  // an empty tensor has no place that could be read
            parts.push_back({std::move(tensor), begin, end});
        }
    }
    if (parts.empty()) {
        context.define_constant(node, constant(to_halide(TranslationContext::result_meta(node).dtype), std::int64_t{0}));
        return;
    }
    context.define_pointwise(node, [&](const Indices &at) {
        Expr result;
        for (std::size_t i = parts.size(); i-- > 0;) {
            const Part &part = parts[i];
            Indices inside = at;
            Expr place = part.begin == Extent(0) ? at[dim] : at[dim] - to_halide(part.begin);
            if (i > 0) {
                place = max(place, 0);
            }
            if (i + 1 < parts.size()) {
                place = min(place, to_halide(part.end - part.begin) - 1);
            }
            inside[dim] = TranslationContext::simplify_index(place, TranslationContext::result_meta(node).sizes);
            Expr value = part.tensor(inside);
            result = result.defined() ? hi::Select::make(at[dim] < to_halide(part.end), value, result) : value;
        }
        return result;
    });
}

void pad(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a");
    std::vector<Extent> low = TranslationContext::extents(node, "low"), high = TranslationContext::extents(node, "high");
    Expr outside = constant(a.type(), TranslationContext::number(node, "value"));
    context.define_pointwise(node, [&](const Indices &at) {
        Indices inside = at;
        Expr is_inside;
        auto require = [&](const Expr &condition) { is_inside = is_inside.defined() ? is_inside && condition : condition; };
        for (std::size_t i = 0; i < at.size(); i++) {
            Expr size = a.extent(static_cast<int>(i)), place = low.at(i) == Extent(0) ? at[i] : at[i] - to_halide(low[i]);
            if (a.size(static_cast<int>(i)) == Extent(0)) {
                return outside;
            }
            auto below = low[i].constant(), above = high.at(i).constant();
            Expr clamped = place;
            if (!below || *below > 0) {
                require(place >= 0);
                clamped = max(clamped, 0);
            }
            if (!above || *above > 0) {
                require(place < size);
                clamped = min(clamped, size - 1);
            }
            inside[i] = clamped;
        }
        Expr value = a(inside);
        return is_inside.defined() ? hi::Select::make(is_inside, value, outside) : value;
    });
}

}  // namespace

void add_concatenations(Table &table) {
    table["prims.cat"] = cat;
    table["prims.pad"] = pad;
}

}  // namespace tilewright::translation
