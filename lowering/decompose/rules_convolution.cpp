// Convolutions of one to three dimensions, plain and transposed.
#include <algorithm>

#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"
#include "lowering/decompose/transposed_convolution.h"

namespace tilewright {
namespace {

/// Adds the bias, one value a channel, in the accumulator's type and rounds once.
Node *finish(Builder &b, Node *value, Node *bias, DType type) {
    if (bias) {
        Extents shape(rank_of(value), Extent(1));
        shape[1] = sizes_of(value)[1];
        value = b.add(value, b.reshape(b.convert(bias, dtype_of(value)), shape));
    }
    return b.convert(value, type);
}

/// `input` may lack the batch dimension. `transposed`: a transposed convolution, with this padding of its output.
Node *convolve(Builder &b, Node *input, Node *weight, Node *bias, const Builder::Convolution &how,
               const std::optional<Extents> &transposed) {
    const int spatial = rank_of(weight) - 2;
    const DType type = dtype_of(input);
    const bool unbatched = rank_of(input) == spatial + 1;
    Node *x = unbatched ? b.unsqueeze(input, 0) : input;
    Node *taps = b.convert(weight, type);
    const auto finished = [&](Node *value, Node *channel_bias) { return finish(b, value, channel_bias, type); };
    Node *value = transposed ? transposed_convolution(b, x, taps, bias, how, *transposed, accumulator_type(type), finished)
                             : finished(b.convolution(x, taps, how, accumulator_type(type)), bias);
    return unbatched ? b.squeeze(value, {0}) : value;
}

/// Total padding of "same"; what is odd goes behind, by padding the input first.
Node *pad_same(Builder &b, Node *input, const Node *weight, const Extents &dilation) {
    const int spatial = rank_of(weight) - 2;
    Extents low(rank_of(input), Extent(0));
    Extents high = low;
    for (int i = 0; i < spatial; ++i) {
        const Extent total = dilation[i] * (sizes_of(weight)[i + 2] - 1);
        const int dim = rank_of(input) - spatial + i;
        low[dim] = floor_div(total, 2);
        high[dim] = total - low[dim];
    }
    return b.pad(input, low, high, Extent(0));
}

Rule convolution_rule(bool transposed) {
    return [=](Builder &b, const Arguments &a) {
        Node *input = a.tensor("input");
        Node *weight = a.tensor("weight");
        const std::size_t spatial = rank_of(weight) - 2;
        const Extents ones(spatial, Extent(1));
        const Extents zeros(spatial, Extent(0));
        Builder::Convolution how;
        how.groups = a.integer("groups", 1);
        how.stride = expand_list(a.extents("stride", ones), spatial, ones);
        how.dilation = expand_list(a.extents("dilation", ones), spatial, ones);
        how.padding = zeros;
        const bool named = a.target().ends_with(".padding");
        if (named) {
            if (a.text("padding", "valid") == "same") {
                input = pad_same(b, input, weight, how.dilation);
            }
        } else {
            how.padding = expand_list(a.extents("padding", zeros), spatial, zeros);
        }
        std::optional<Extents> output_padding;
        if (transposed || a.flag("transposed", false)) {
            output_padding = expand_list(a.extents("output_padding", zeros), spatial, zeros);
        }
        return convolve(b, input, weight, a.optional_tensor("bias"), how, output_padding);
    };
}

}  // namespace

void add_convolution_rules(RuleTable &table) {
    table.add({"aten.convolution.default", "aten._convolution.default", "aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default",
               "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding"},
              convolution_rule(false));
    table.add({"aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"}, convolution_rule(true));
}

}  // namespace tilewright
