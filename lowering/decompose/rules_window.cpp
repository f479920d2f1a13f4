// Sliding blocks as columns (im2col) and back (col2im).
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

struct Blocks {
    Extents kernel, dilation, padding, stride;
};

Blocks read_blocks(const Arguments &a) {
    const Extents ones(2, Extent(1));
    return {expand_list(a.extents("kernel_size"), 2, ones), expand_list(a.extents("dilation"), 2, ones),
            expand_list(a.extents("padding"), 2, Extents(2, Extent(0))), expand_list(a.extents("stride"), 2, ones)};
}

Extent block_count(const Extent &size, const Blocks &blocks, int i) {
    return floor_div(size + blocks.padding[i] * 2 - blocks.dilation[i] * (blocks.kernel[i] - 1) - 1, blocks.stride[i]) + 1;
}

Node *im2col(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const bool unbatched = rank_of(self) == 3;
    Node *x = unbatched ? b.unsqueeze(self, 0) : self;
    const Blocks blocks = read_blocks(a);
    const Extents low = {0, 0, blocks.padding[0], blocks.padding[1]};
    Node *padded = b.pad(x, low, low, dtype_of(x) == DType::boolean ? Number(false) : Number(Extent(0)));
    const Extents stride = contiguous_strides(sizes_of(padded));
    const Extent rows = block_count(sizes_of(x)[2], blocks, 0);
    const Extent columns = block_count(sizes_of(x)[3], blocks, 1);
    const Extent batch = sizes_of(x)[0], channels = sizes_of(x)[1];
    Node *view = b.as_strided(padded, {batch, channels, blocks.kernel[0], blocks.kernel[1], rows, columns},
                              {stride[0], stride[1], stride[2] * blocks.dilation[0], stride[3] * blocks.dilation[1],
                               stride[2] * blocks.stride[0], stride[3] * blocks.stride[1]},
                              0);
    Node *result = b.reshape(view, {batch, channels * product(blocks.kernel), rows * columns});
    return unbatched ? b.squeeze(result, {0}) : result;
}

/// Adds each block at its place in the padded plane, then crops the padding.
Node *col2im(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const bool unbatched = rank_of(self) == 2;
    Node *x = b.to_compute(unbatched ? b.unsqueeze(self, 0) : self);
    const Extents out = a.extents("output_size");
    const Blocks blocks = read_blocks(a);
    const Extent rows = block_count(out[0], blocks, 0);
    const Extent columns = block_count(out[1], blocks, 1);
    const Extent height = out[0] + blocks.padding[0] * 2;
    const Extent width = out[1] + blocks.padding[1] * 2;
    const Extent batch = sizes_of(x)[0];
    const Extent channels = floor_div(sizes_of(x)[1], product(blocks.kernel));
    const auto axis = [&](const Extent &size, const Extent &step, const Extents &shape) {
        return b.reshape(b.iota(size, 0, step, DType::int64), shape);
    };
    Node *row =
        b.add(axis(blocks.kernel[0], blocks.dilation[0], {blocks.kernel[0], 1, 1, 1}), axis(rows, blocks.stride[0], {1, 1, rows, 1}));
    Node *column =
        b.add(axis(blocks.kernel[1], blocks.dilation[1], {1, blocks.kernel[1], 1, 1}), axis(columns, blocks.stride[1], {1, 1, 1, columns}));
    Node *place = b.flatten(b.add(b.mul(row, width), column));
    Node *plane = b.full({batch, channels, height * width}, Extent(0), dtype_of(x));
    Node *values = b.reshape(x, {batch, channels, sizes_of(place)[0]});
    Node *sum = b.reshape(b.index_put(plane, {nullptr, nullptr, place}, values, true, false), {batch, channels, height, width});
    for (int i = 0; i < 2; ++i) {
        sum = b.slice(sum, i + 2, blocks.padding[i], blocks.padding[i] + out[i]);
    }
    sum = b.convert(sum, dtype_of(self));
    return unbatched ? b.squeeze(sum, {0}) : sum;
}

}  // namespace

void add_window_rules(RuleTable &table) {
    table.add("aten.im2col.default", im2col);
    table.add("aten.col2im.default", col2im);
}

}  // namespace tilewright
