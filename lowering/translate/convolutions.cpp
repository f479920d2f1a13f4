// Convolutions as sums over windows.
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/contractions.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

struct Convolution {
    TensorValue input, weight;
    std::vector<int> stride, padding, dilation;
    int groups = 1;
    std::size_t spatial = 0;  ///< number of spatial dimensions
    Halide::Type type;
    const TensorMeta *result = nullptr;

    Convolution(TranslationContext &context, const Node &node)
        : input(context.operand(node, "input")),
          weight(context.operand(node, "weight")),
          stride(TranslationContext::integers(node, "stride")),
          padding(TranslationContext::integers(node, "padding")),
          dilation(TranslationContext::integers(node, "dilation")),
          groups(TranslationContext::integer(node, "groups")),
          spatial(static_cast<std::size_t>(input.rank()) - 2),
          type(accumulation_type(input.type())),
          result(&TranslationContext::result_meta(node)) {
        bool complete = stride.size() == spatial && padding.size() == spatial && dilation.size() == spatial;
        internal_assert(complete, "{} ({}): stride, padding and dilation need {} entries", node.name, node.target, spatial);
    }

    /// The channel `within` the group of channel `of`, where `of` counts channels in groups of `size`.
    Expr grouped_channel(const Expr &of, const Extent &size, const Expr &within, const Extent &group_size) const {
        if (groups == 1) {
            return within;
        }
        Expr group = size == Extent(1) ? of : of / to_halide(size);
        return group_size == Extent(1) ? group : group * to_halide(group_size) + within;
    }

    Expr product(const Indices &input_at, const Expr &is_inside, const Indices &weight_at) const {
        Expr value = math::convert(type, input(input_at));
        if (is_inside.defined()) {
            value = hi::Select::make(is_inside, value, constant(type, 0.0));
        }
        return math::mul(value, math::convert(type, weight(weight_at)));
    }
};

/// weight [O, C/groups, k…]; y(n, o, p) = sum over c, k of x(n, c, p*stride + k*dilation - padding) * w(o, c, k)
Expr term(const Convolution &conv, const Indices &at, const Indices &r) {
    Extent outputs = floor_div(conv.weight.size(0), conv.groups), inputs = conv.weight.size(1);
    Indices input_at = {at[0], conv.grouped_channel(at[1], outputs, r[0], inputs)}, weight_at = {at[1], r[0]};
    Expr is_inside;
    for (std::size_t i = 0; i < conv.spatial; i++) {
        int dim = static_cast<int>(i) + 2;
        WindowPlace place = window_place(at[i + 2], conv.result->sizes[i + 2], r[i + 1], conv.weight.size(dim), conv.input.size(dim),
                                         conv.stride[i], conv.padding[i], conv.dilation[i]);
        is_inside = both(is_inside, place.is_inside);
        input_at.push_back(place.clamped);
        weight_at.push_back(r[i + 1]);
    }
    return conv.product(input_at, is_inside, weight_at);
}

void convolution(TranslationContext &context, const Node &node) {
    Convolution conv(context, node);
    std::vector<Extent> reduction = {conv.weight.size(1)};
    for (std::size_t i = 0; i < conv.spatial; i++) {
        reduction.push_back(conv.weight.size(static_cast<int>(i) + 2));
    }
    define_sum_of_products(context, node, conv.type, reduction,
                           [&](const Indices &arguments, const Indices &reduced) { return term(conv, arguments, reduced); });
}

}  // namespace

void add_convolutions(Table &table) { table["tw.convolution"] = convolution; }

}  // namespace tilewright::translation
