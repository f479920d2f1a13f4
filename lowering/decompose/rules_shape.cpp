// Joining, repeating and reordering.
#include <algorithm>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Brings tensors to their common type, for joining.
std::vector<Node *> to_common_type(Builder &b, const std::vector<Node *> &tensors) {
    const DType type = result_type(std::vector<Operand>(tensors.begin(), tensors.end()));
    std::vector<Node *> same;
    for (Node *tensor : tensors) {
        same.push_back(b.convert(tensor, type));
    }
    return same;
}

Node *cat(Builder &b, const std::vector<Node *> &tensors, std::int64_t dim) {
    std::vector<Node *> parts = to_common_type(b, tensors);
    // An old rule of PyTorch's: one-dimensional tensors without elements join with anything.
    std::vector<Node *> kept;
    for (Node *part : parts) {
        if (!(rank_of(part) == 1 && sizes_of(part)[0] == Extent(0))) {
            kept.push_back(part);
        }
    }
    if (kept.empty()) {
        return parts.front();
    }
    return b.cat(kept, wrap_dim(dim, rank_of(kept.front())));
}

Node *stack(Builder &b, const std::vector<Node *> &tensors, std::int64_t dim) {
    std::vector<Node *> parts;
    const int place = wrap_dim(dim, rank_of(tensors.front()) + 1);
    for (Node *tensor : to_common_type(b, tensors)) {
        parts.push_back(b.unsqueeze(tensor, place));
    }
    return b.cat(parts, place);
}

Node *at_least(Builder &b, Node *tensor, int rank) {
    if (rank_of(tensor) >= rank) {
        return tensor;
    }
    if (rank_of(tensor) == 0) {
        return b.reshape(tensor, Extents(rank, Extent(1)));
    }
    if (rank == 2) {
        return b.unsqueeze(tensor, 0);
    }
    return rank_of(tensor) == 1 ? b.reshape(tensor, {1, sizes_of(tensor)[0], 1}) : b.unsqueeze(tensor, 2);
}

/// torch.hstack and its kin: joins along `dim` after raising the rank.
Rule joined_rule(int rank, int dim) {
    return [=](Builder &b, const Arguments &a) {
        std::vector<Node *> parts;
        for (Node *tensor : a.tensors("tensors")) {
            parts.push_back(at_least(b, tensor, rank));
        }
        const bool columns = rank == 1 && rank_of(parts.front()) > 1;
        return cat(b, parts, columns ? 1 : dim);
    };
}

/// Each dimension becomes (repeats, size), which a reshape joins.
Node *repeat(Builder &b, Node *self, const Extents &repeats) {
    const std::size_t added = repeats.size() - sizes_of(self).size();
    Extents split, spread, joined;
    for (std::size_t i = 0; i < repeats.size(); ++i) {
        const Extent size = i < added ? Extent(1) : sizes_of(self)[i - added];
        if (!(repeats[i] == Extent(1))) {
            split.emplace_back(1);
            spread.push_back(repeats[i]);
        }
        split.push_back(size);
        spread.push_back(size);
        joined.push_back(repeats[i] * size);
    }
    return b.reshape(b.broadcast(b.reshape(self, split), spread), joined);
}

Node *repeat_interleave(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    if (!a.has("dim")) {
        self = b.flatten(self);
    }
    const int dim = a.dim("dim", rank_of(self), 0);
    const Extent repeats = a.extent("repeats");
    Extents spread = sizes_of(self);
    Extents joined = sizes_of(self);
    spread.insert(spread.begin() + dim + 1, repeats);
    joined[dim] = joined[dim] * repeats;
    return b.reshape(b.broadcast(b.unsqueeze(self, dim + 1), spread), joined);
}

Node *roll(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const Extents shifts = a.extents("shifts");
    const Extents original = sizes_of(self);
    std::vector<std::int64_t> dims = a.integers("dims", std::vector<std::int64_t>{});
    Node *value = dims.empty() ? b.flatten(self) : self;
    if (dims.empty()) {
        dims = {0};
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const int dim = wrap_dim(dims[i], rank_of(value));
        const Extent size = sizes_of(value)[dim];
        if (size == Extent(0) || rank_of(value) == 0) {
            continue;
        }
        const Extent shift = mod(shifts[i], size);
        if (!(shift == Extent(0))) {
            value = b.cat({b.slice(value, dim, size - shift, size), b.slice(value, dim, 0, size - shift)}, dim);
        }
    }
    return b.reshape(value, original);
}

Dims wrapped(const std::vector<std::int64_t> &dims, int rank) {
    Dims result;
    for (std::int64_t dim : dims) {
        result.push_back(wrap_dim(dim, rank));
    }
    return result;
}

Node *rot90(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const Dims dims = wrapped(a.integers("dims", std::vector<std::int64_t>{0, 1}), rank_of(self));
    switch (((a.integer("k", 1) % 4) + 4) % 4) {
        case 1:
            return b.transpose(b.flip(self, {dims[1]}), dims[0], dims[1]);
        case 2:
            return b.flip(self, dims);
        case 3:
            return b.transpose(b.flip(self, {dims[0]}), dims[0], dims[1]);
        default:
            return self;
    }
}

Node *diag_embed(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const int rank = rank_of(self) + 1;
    const std::int64_t offset = a.integer("offset", 0);
    const int dim1 = wrap_dim(a.integer("dim1", -2), rank);
    const int dim2 = wrap_dim(a.integer("dim2", -1), rank);
    const Extent size = sizes_of(self).back() + std::abs(offset);
    Extents none(rank_of(self), Extent(0));
    Extents more = none;
    more.back() = std::abs(offset);
    Node *padded = b.pad(self, none, more, dtype_of(self) == DType::boolean ? Number(false) : Number(Extent(0)));
    Node *line = b.unsqueeze(padded, offset >= 0 ? rank - 1 : rank - 2);
    Node *row = b.unsqueeze(b.iota(size, offset, 1, DType::int64), 1);
    Node *matrix = b.where(b.eq(row, b.iota(size)), line, b.full({}, Extent(0), dtype_of(self)));
    Dims order;  // of the result's dimensions among (batch…, row, column)
    for (int i = 0, batch = 0; i < rank; ++i) {
        order.push_back(i == dim1 ? rank - 2 : i == dim2 ? rank - 1 : batch++);
    }
    return b.permute(matrix, order);
}

Node *diagonal(Builder &b, Node *self, std::int64_t offset, int dim1, int dim2) {
    const Extents &sizes = sizes_of(self);
    const Extents strides = contiguous_strides(sizes);
    Extents size, stride;
    for (int i = 0; i < rank_of(self); ++i) {
        if (i != dim1 && i != dim2) {
            size.push_back(sizes[i]);
            stride.push_back(strides[i]);
        }
    }
    const Extent rows = sizes[dim1] + std::min<std::int64_t>(offset, 0);
    const Extent columns = sizes[dim2] - std::max<std::int64_t>(offset, 0);
    size.push_back(max(min(rows, columns), 0));
    stride.push_back(strides[dim1] + strides[dim2]);
    return b.as_strided(self, size, stride, offset >= 0 ? strides[dim2] * offset : strides[dim1] * -offset);
}

Node *diagonal_rule(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    return diagonal(b, self, a.integer("offset", 0), a.dim("dim1", rank_of(self), 0), a.dim("dim2", rank_of(self), 1));
}

Node *unfold(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    if (rank_of(self) == 0) {
        return b.reshape(self, {1});
    }
    const int dim = a.dim("dimension", rank_of(self));
    const Extent length = a.extent("size");
    const Extent step = a.extent("step");
    Extents size = sizes_of(self);
    Extents stride = contiguous_strides(size);
    size[dim] = floor_div(size[dim] - length, step) + 1;
    size.push_back(length);
    stride.push_back(stride[dim]);
    stride[dim] = stride[dim] * step;
    return b.as_strided(self, size, stride, 0);
}

/// (N…, C*r*r, H, W) → (N…, C, H*r, W*r) and back.
Node *pixel_shuffle(Builder &b, Node *self, std::int64_t factor, bool down) {
    const int batch = rank_of(self) - 3;
    const Extents &size = sizes_of(self);
    const Extents outer(size.begin(), size.begin() + batch);
    const Extent channels = size[batch], height = size[batch + 1], width = size[batch + 2];
    const Extents split = down ? Extents{channels, floor_div(height, factor), factor, floor_div(width, factor), factor}
                               : Extents{floor_div(channels, factor * factor), factor, factor, height, width};
    const Dims order = down ? Dims{0, 2, 4, 1, 3} : Dims{0, 3, 1, 4, 2};
    const Extents joined = down ? Extents{channels * (factor * factor), floor_div(height, factor), floor_div(width, factor)}
                                : Extents{split[0], height * factor, width * factor};
    Extents shape = outer;
    shape.insert(shape.end(), split.begin(), split.end());
    Dims dims = all_dims(batch);
    for (int dim : order) {
        dims.push_back(batch + dim);
    }
    Extents result = outer;
    result.insert(result.end(), joined.begin(), joined.end());
    return b.reshape(b.permute(b.reshape(self, shape), dims), result);
}

Node *channel_shuffle(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const Extent groups = a.extent("groups");
    Extents shape = sizes_of(self);
    shape[1] = floor_div(shape[1], groups);
    shape.insert(shape.begin() + 1, groups);
    return b.reshape(b.transpose(b.reshape(self, shape), 1, 2), sizes_of(self));
}

Results meshgrid(Builder &b, const Arguments &a) {
    const std::vector<Node *> tensors = a.tensors("tensors");
    const bool swapped = a.text("indexing", "ij") == "xy" && tensors.size() >= 2;
    Extents size;
    for (Node *tensor : tensors) {
        size.push_back(rank_of(tensor) == 0 ? Extent(1) : sizes_of(tensor)[0]);
    }
    std::vector<Node *> grids;
    for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
        Node *grid = b.broadcast_in_dim(b.flatten(tensors[i]), size, {i});
        grids.push_back(swapped ? b.transpose(grid, 0, 1) : grid);
    }
    return grids;
}

Node *cartesian_product(Builder &b, const Arguments &a) {
    const std::vector<Node *> tensors = a.tensors("tensors");
    if (tensors.size() == 1) {
        return tensors.front();
    }
    std::vector<Node *> columns;
    for (Node *grid : meshgrid(b, a)) {
        columns.push_back(b.flatten(grid));
    }
    return stack(b, columns, 1);
}

/// Matrices along a diagonal, zeros elsewhere.
Node *block_diagonal(Builder &b, const Arguments &a) {
    std::vector<Node *> blocks;
    Extent width = 0;
    for (Node *tensor : to_common_type(b, a.tensors("tensors"))) {
        blocks.push_back(rank_of(tensor) == 2 ? tensor : b.reshape(tensor, {1, product(sizes_of(tensor))}));
        width = width + sizes_of(blocks.back())[1];
    }
    std::vector<Node *> rows;
    Extent before = 0;
    for (Node *block : blocks) {
        const Extent after = width - before - sizes_of(block)[1];
        rows.push_back(b.pad(block, {0, before}, {0, after}, dtype_of(block) == DType::boolean ? Number(false) : Number(Extent(0))));
        before = before + sizes_of(block)[1];
    }
    return b.cat(rows, 0);
}

/// Kronecker's product: each element of the first times the whole second.
Node *kronecker(Builder &b, const Arguments &a) {
    Node *x = a.tensor("self");
    Node *y = a.tensor("other");
    const int rank = std::max(rank_of(x), rank_of(y));
    Extents of_x, of_y, joined;
    for (int i = 0; i < rank; ++i) {
        const int in_x = i - (rank - rank_of(x)), in_y = i - (rank - rank_of(y));
        const Extent left = in_x >= 0 ? sizes_of(x)[in_x] : Extent(1);
        const Extent right = in_y >= 0 ? sizes_of(y)[in_y] : Extent(1);
        of_x.insert(of_x.end(), {left, 1});
        of_y.insert(of_y.end(), {1, right});
        joined.push_back(left * right);
    }
    Node *product = b.apply("aten.mul.Tensor", {{"self", b.reshape(x, of_x)}, {"other", b.reshape(y, of_y)}}).front();
    return b.reshape(product, joined);
}

}  // namespace

void add_shape_rules(RuleTable &table) {
    table.add({"aten.cat.default", "aten.concat.default", "aten.concatenate.default"},
              [](Builder &b, const Arguments &a) { return cat(b, a.tensors("tensors"), a.integer("dim", 0)); });
    table.add("aten.stack.default", [](Builder &b, const Arguments &a) { return stack(b, a.tensors("tensors"), a.integer("dim", 0)); });
    table.add("aten.hstack.default", joined_rule(1, 0));
    table.add({"aten.vstack.default", "aten.row_stack.default"}, joined_rule(2, 0));
    table.add("aten.dstack.default", joined_rule(3, 2));
    table.add("aten.column_stack.default", [](Builder &b, const Arguments &a) {
        std::vector<Node *> parts;
        for (Node *tensor : a.tensors("tensors")) {
            parts.push_back(rank_of(tensor) >= 2 ? tensor : b.reshape(tensor, {product(sizes_of(tensor)), 1}));
        }
        return cat(b, parts, 1);
    });
    for (int rank : {1, 2, 3}) {
        table.add(fmt::format("aten.atleast_{}d.default", rank),
                  [=](Builder &b, const Arguments &a) { return at_least(b, a.tensor("self"), rank); });
    }
    for (int rank : {1, 2, 3}) {
        table.add(fmt::format("aten.atleast_{}d.Sequence", rank), [=](Builder &b, const Arguments &a) -> Results {
            std::vector<Node *> raised;
            for (Node *tensor : a.tensors("tensors")) {
                raised.push_back(at_least(b, tensor, rank));
            }
            return raised;
        });
    }
    table.add("aten.cartesian_prod.default", cartesian_product);
    table.add("aten.block_diag.default", block_diagonal);
    table.add("aten.kron.default", kronecker);
    table.add("aten.repeat.default", [](Builder &b, const Arguments &a) { return repeat(b, a.tensor("self"), a.extents("repeats")); });
    table.add("aten.tile.default", [](Builder &b, const Arguments &a) {
        Extents repeats = a.extents("dims");
        while (repeats.size() < sizes_of(a.tensor("self")).size()) {
            repeats.insert(repeats.begin(), Extent(1));
        }
        return repeat(b, a.tensor("self"), repeats);
    });
    table.add("aten.repeat_interleave.self_int", repeat_interleave);
    table.add("aten.roll.default", roll);
    table.add("aten.flip.default", [](Builder &b, const Arguments &a) {
        return b.flip(a.tensor("self"), wrapped(a.integers("dims"), rank_of(a.tensor("self"))));
    });
    table.add("aten.fliplr.default", [](Builder &b, const Arguments &a) { return b.flip(a.tensor("self"), {1}); });
    table.add("aten.flipud.default", [](Builder &b, const Arguments &a) { return b.flip(a.tensor("self"), {0}); });
    table.add("aten.rot90.default", rot90);
    table.add({"aten.diagonal.default", "aten.diagonal_copy.default"}, diagonal_rule);
    table.add("aten.linalg_diagonal.default", [](Builder &b, const Arguments &a) {
        Node *matrix = a.tensor("A");
        const int rank = rank_of(matrix);
        return diagonal(b, matrix, a.integer("offset", 0), a.dim("dim1", rank, -2), a.dim("dim2", rank, -1));
    });
    table.add("aten.diag_embed.default", diag_embed);
    table.add("aten.diag.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const std::int64_t offset = a.integer("diagonal", 0);
        return rank_of(self) == 2 ? diagonal(b, self, offset, 0, 1)
                                  : b.apply("aten.diag_embed.default", {{"self", self}, {"offset", Extent(offset)}}).front();
    });
    table.add("aten.trace.default", [](Builder &b, const Arguments &a) {
        return b.apply("aten.sum.default", {{"self", diagonal(b, a.tensor("self"), 0, 0, 1)}}).front();
    });
    table.add({"aten.unfold.default", "aten.unfold_copy.default"}, unfold);
    table.add("aten.pixel_shuffle.default",
              [](Builder &b, const Arguments &a) { return pixel_shuffle(b, a.tensor("self"), a.integer("upscale_factor"), false); });
    table.add("aten.pixel_unshuffle.default",
              [](Builder &b, const Arguments &a) { return pixel_shuffle(b, a.tensor("self"), a.integer("downscale_factor"), true); });
    table.add({"aten.channel_shuffle.default", "aten.native_channel_shuffle.default"}, channel_shuffle);
    table.add({"aten.meshgrid.default", "aten.meshgrid.indexing"}, meshgrid);
    table.add("aten.broadcast_tensors.default", [](Builder &b, const Arguments &a) -> Results {
        Extents size;
        for (Node *tensor : a.tensors("tensors")) {
            size = broadcast_shapes(size, sizes_of(tensor));
        }
        std::vector<Node *> results;
        for (Node *tensor : a.tensors("tensors")) {
            results.push_back(b.broadcast(tensor, size));
        }
        return results;
    });
}

}  // namespace tilewright
