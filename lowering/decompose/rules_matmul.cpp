// Products of matrices and vectors.
#include <algorithm>

#include "dsl/error.h"
#include "lowering/decompose/matmul.h"
#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {

DType accumulator_type(DType type) {
    if (type == DType::boolean || type == DType::uint8 || type == DType::int8 || type == DType::int16) {
        return DType::int32;
    }
    return compute_type(type);
}

/// Whether a batch of matrices is a permutation that leaves the batch in front.
bool is_transposed(const Node *matrices) {
    if (rank_of(matrices) != 3 || matrices->target != "prims.permute") {
        return false;
    }
    return *matrices->find("dims")->get_if<ArgumentList>()->front().get_if<Extent>() == Extent(0);
}

namespace {

/// A product unit's operand: narrow integers other than int8 are widened.
Node *factor(Builder &b, Node *a) {
    const DType type = dtype_of(a);
    const bool widened = type == DType::boolean || type == DType::uint8 || type == DType::int16;
    return widened ? b.convert(a, DType::int32) : a;
}

Node *dot(Builder &b, Node *left, Node *right) { return b.dot(factor(b, left), factor(b, right), accumulator_type(dtype_of(left))); }

Extents matrix_shape(const Extents &batch, const Node *matrix) {
    Extents size = batch;
    size.insert(size.end(), sizes_of(matrix).end() - 2, sizes_of(matrix).end());
    return size;
}

Extents batch_of(const Node *matrix) { return Extents(sizes_of(matrix).begin(), sizes_of(matrix).end() - 2); }

/// What a batch of matrices was before a reshape made it one dimension; empty where none did.
Extents batch_before_reshape(const Node *matrices) {
    const Node *reshaped = is_transposed(matrices) ? matrices->input("a") : matrices;
    if (rank_of(matrices) != 3 || reshaped->target != "prims.reshape") {
        return {};
    }
    const Node *source = reshaped->input("a");
    const Extents batch = rank_of(source) > 3 ? batch_of(source) : Extents();
    const bool is_several = std::count_if(batch.begin(), batch.end(), [](const Extent &size) { return !(size == Extent(1)); }) > 1;
    return is_several && sizes_of(source) == matrix_shape(batch, reshaped) ? batch : Extents();
}

/// A single batch dimension as several.
Node *split_batch(Builder &b, Node *matrices, const Extents &batch) {
    if (is_transposed(matrices)) {
        Node *split = split_batch(b, matrices->input("a"), batch);
        return b.transpose(split, rank_of(split) - 2, rank_of(split) - 1);
    }
    return b.reshape(matrices, matrix_shape(batch, matrices));
}

/// Batches that reshapes made one dimension are multiplied as they were: a stride for each dimension, and what surrounds the product lies
/// as it does.
Node *batched_dot(Builder &b, Node *left, Node *right) {
    if (Node *product = rank_of(left) == 3 && rank_of(right) == 3 ? chosen_product(b, left, right) : nullptr) {
        return product;
    }
    Extents batch = batch_before_reshape(left);
    batch = batch.empty() ? batch_before_reshape(right) : batch;
    if (batch.empty() || batch_of(left) != batch_of(right)) {
        return dot(b, left, right);
    }
    Extents size = batch_of(left);
    size.insert(size.end(), {sizes_of(left)[1], sizes_of(right)[2]});
    return b.reshape(dot(b, split_batch(b, left, batch), split_batch(b, right, batch)), size);
}

}  // namespace

Node *matmul(Builder &b, Node *left, Node *right) {
    internal_assert(dtype_of(left) == dtype_of(right), "matmul of two types");
    if (rank_of(left) == 0 || rank_of(right) == 0) {
        user_error("both operands of a product need a dimension; one is a tensor without dimensions");
    }
    const bool row = rank_of(left) == 1;
    const bool column = rank_of(right) == 1;
    Node *x = row ? b.unsqueeze(left, 0) : left;
    Node *y = column ? b.unsqueeze(right, 1) : right;
    Node *result = nullptr;
    if (rank_of(y) == 2 && rank_of(x) > 2) {
        // One matrix for all: the batch is further rows.
        Extents size = sizes_of(x);
        const Extent inner = size.back();
        size.pop_back();
        const Extents rows = size;
        result = dot(b, b.reshape(x, {product(rows), inner}), y);
        size.push_back(sizes_of(y)[1]);
        result = b.reshape(result, size);
    } else {
        const Extents batch = broadcast_shapes(batch_of(x), batch_of(y));
        result = batched_dot(b, b.broadcast(x, matrix_shape(batch, x)), b.broadcast(y, matrix_shape(batch, y)));
    }
    Dims dropped;
    if (row) {
        dropped.push_back(rank_of(result) - 2);
    }
    if (column) {
        dropped.push_back(rank_of(result) - 1);
    }
    return b.squeeze(result, dropped);
}

Node *linear(Builder &b, Node *input, Node *weight, Node *bias) {
    Node *result = matmul(b, input, rank_of(weight) == 1 ? weight : b.transpose(weight, 0, 1));
    if (bias) {
        result = b.add(result, b.convert(bias, dtype_of(result)));
    }
    return b.convert(result, dtype_of(input));
}

namespace {

/// beta * self + alpha * product, rounded once. A zero beta ignores self, NaN and all.
Rule added_product_rule(const char *left, const char *right, bool sum_batch, bool outer) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        Node *x = a.tensor(left);
        Node *y = a.tensor(right);
        const Number beta = a.number("beta", Number(Extent(1)));
        const Number alpha = a.number("alpha", Number(Extent(1)));
        const DType type = dtype_of(x);
        Node *value = nullptr;
        if (outer) {
            const DType computed = compute_type(type);
            value = b.mul(b.unsqueeze(b.convert(x, computed), 1), b.convert(y, computed));
        } else {
            value = matmul(b, x, y);
        }
        if (sum_batch) {
            value = b.sum(value, {0});
        }
        if (!is_one(alpha)) {
            value = b.mul(value, alpha);
        }
        if (!is_zero(beta)) {
            Node *addend = b.convert(self, dtype_of(value));
            value = b.add(is_one(beta) ? addend : b.mul(addend, beta), value);
        }
        return b.convert(value, type);
    };
}

Rule product_rule(const char *left, const char *right) {
    return [=](Builder &b, const Arguments &a) {
        Node *x = a.tensor(left);
        return b.convert(matmul(b, x, a.tensor(right)), a.dtype("out_dtype").value_or(dtype_of(x)));
    };
}

Node *outer(Builder &b, const Arguments &a, const char *other) {
    Node *column = b.unsqueeze(a.tensor("self"), 1);
    return elementwise(b, {column, a.tensor(other)}, Promotion::common, [](Builder &b, const std::vector<Operand> &v) {
        return dtype_of(v[0].node()) == DType::boolean ? b.logical_and(v[0].node(), v[1].node()) : b.mul(v[0], v[1]);
    });
}

Node *cross(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    Node *other = a.tensor("other");
    const Extents size = broadcast_shapes(sizes_of(self), sizes_of(other));
    int dim = a.dim("dim", static_cast<int>(size.size()), -1);
    if (!a.has("dim") && a.target() == "aten.cross.default") {
        dim = static_cast<int>(std::find(size.begin(), size.end(), Extent(3)) - size.begin());
    }
    return elementwise(b, {b.broadcast(self, size), b.broadcast(other, size)}, Promotion::common,
                       [&](Builder &b, const std::vector<Operand> &v) {
                           const auto part = [&](int which, int i) { return b.slice(v[which].node(), dim, i, i + 1); };
                           std::vector<Node *> parts;
                           for (int i = 0; i < 3; ++i) {
                               const int j = (i + 1) % 3, k = (i + 2) % 3;
                               parts.push_back(b.sub(b.mul(part(0, j), part(1, k)), b.mul(part(0, k), part(1, j))));
                           }
                           return b.cat(parts, dim);
                       });
}

}  // namespace

void add_matmul_rules(RuleTable &table) {
    add_grouped_product_rules(table);
    table.add({"aten.matmul.default", "aten.linalg_matmul.default"}, product_rule("self", "other"));
    table.add({"aten.mm.default", "aten.bmm.default", "aten.mm.dtype", "aten.bmm.dtype"}, product_rule("self", "mat2"));
    table.add("aten.mv.default", product_rule("self", "vec"));
    table.add("aten.dot.default", product_rule("self", "tensor"));
    table.add("aten.vdot.default", product_rule("self", "other"));
    table.add("aten.inner.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        Node *other = a.tensor("other");
        if (rank_of(self) == 0 || rank_of(other) == 0) {
            return b.apply("aten.mul.Tensor", {{"self", self}, {"other", other}});
        }
        // The last dimensions of both are summed over.
        Extents size(sizes_of(self).begin(), sizes_of(self).end() - 1);
        size.insert(size.end(), sizes_of(other).begin(), sizes_of(other).end() - 1);
        const Extent inner = sizes_of(self).back();
        const auto rows = [&](Node *n) { return b.reshape(n, {product(Extents(sizes_of(n).begin(), sizes_of(n).end() - 1)), inner}); };
        return b.reshape(b.convert(matmul(b, rows(self), b.transpose(rows(other), 0, 1)), dtype_of(self)), size);
    });
    table.add("aten.linear.default",
              [](Builder &b, const Arguments &a) { return linear(b, a.tensor("input"), a.tensor("weight"), a.optional_tensor("bias")); });
    table.add("aten.bilinear.default", [](Builder &b, const Arguments &a) {
        // out[n, o] = sum_ij x[n, i] w[o, i, j] y[n, j]
        Node *x = a.tensor("input1");
        Node *y = a.tensor("input2");
        Node *w = a.tensor("weight");
        const Extents batch(sizes_of(x).begin(), sizes_of(x).end() - 1);
        const Extent outputs = sizes_of(w)[0], rows = sizes_of(w)[1], columns = sizes_of(w)[2];
        Node *left = b.reshape(x, {product(batch), rows});
        Node *right = b.reshape(y, {product(batch), 1, columns});
        Node *mapped = matmul(b, left, b.reshape(b.permute(w, {1, 0, 2}), {rows, outputs * columns}));
        mapped = b.reshape(mapped, {product(batch), outputs, columns});
        Node *value = b.sum(b.mul(mapped, b.convert(right, dtype_of(mapped))), {2});
        Extents size = batch;
        size.push_back(outputs);
        value = b.reshape(value, size);
        if (Node *bias = a.optional_tensor("bias")) {
            value = b.add(value, b.convert(bias, dtype_of(value)));
        }
        return b.convert(value, dtype_of(x));
    });
    table.add("aten._trilinear.default", [](Builder &b, const Arguments &a) {
        // Three operands are spread over common dimensions, multiplied, and summed over some of them.
        Node *value = nullptr;
        for (int i = 1; i <= 3; ++i) {
            Node *x = b.to_compute(a.tensor(fmt::format("i{}", i)));
            std::vector<std::int64_t> spread = a.integers(fmt::format("expand{}", i));
            std::sort(spread.begin(), spread.end());
            for (std::int64_t dim : spread) {
                x = b.unsqueeze(x, static_cast<int>(dim));
            }
            value = value ? b.mul(value, x) : x;
        }
        return b.convert(b.sum(value, a.dims("sumdim", rank_of(value))), dtype_of(a.tensor("i1")));
    });
    table.add({"aten.addmm.default", "aten.addmm.dtype"}, added_product_rule("mat1", "mat2", false, false));
    table.add("aten.addmv.default", added_product_rule("mat", "vec", false, false));
    table.add("aten.baddbmm.default", added_product_rule("batch1", "batch2", false, false));
    table.add("aten.addbmm.default", added_product_rule("batch1", "batch2", true, false));
    table.add("aten.addr.default", added_product_rule("vec1", "vec2", false, true));
    table.add("aten._addmm_activation.default", [](Builder &b, const Arguments &a) {
        Node *value = added_product_rule("mat1", "mat2", false, false)(b, a).front();
        return b.apply(a.flag("use_gelu", false) ? "aten.gelu.default" : "aten.relu.default", {{"self", value}}).front();
    });
    table.add({"aten.outer.default", "aten.ger.default"},
              [](Builder &b, const Arguments &a) { return outer(b, a, a.has("vec2") ? "vec2" : "other"); });
    table.add({"aten.cross.default", "aten.linalg_cross.default"}, cross);
    table.add("aten.linalg_vecdot.default", [](Builder &b, const Arguments &a) {
        return elementwise(b, {a.tensor("x"), a.tensor("y")}, Promotion::common, [&](Builder &b, const std::vector<Operand> &v) {
            Node *product = b.mul(v[0], v[1]);
            return b.sum(product, {a.dim("dim", rank_of(product), -1)});
        });
    });
    table.add("aten.linalg_matrix_power.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const std::int64_t power = a.integer("n");
        if (power < 0) {
            a.refuse("a negative power needs the inverse of a matrix, which is not supported");
        }
        if (power == 0) {
            Node *row = b.unsqueeze(b.iota(sizes_of(self)[rank_of(self) - 2]), 1);
            Node *identity = b.convert(b.eq(row, b.iota(sizes_of(self).back())), dtype_of(self));
            return b.broadcast(identity, sizes_of(self));
        }
        Node *value = self;
        for (std::int64_t i = 1; i < power; ++i) {
            value = b.convert(matmul(b, value, self), dtype_of(self));
        }
        return value;
    });
    table.add({"aten.chain_matmul.default", "aten.linalg_multi_dot.default"}, [](Builder &b, const Arguments &a) {
        std::vector<Node *> matrices = a.tensors(a.has("matrices") ? "matrices" : "tensors");
        Node *value = matrices.front();
        for (std::size_t i = 1; i < matrices.size(); ++i) {
            value = b.convert(matmul(b, value, matrices[i]), dtype_of(matrices[i]));
        }
        return value;
    });
    table.add("aten.tensordot.default", [](Builder &b, const Arguments &a) {
        Node *x = a.tensor("self");
        Node *y = a.tensor("other");
        const auto arrange = [&](Node *n, const std::vector<std::int64_t> &summed, bool last) {
            Dims inner, outer;
            for (std::int64_t dim : summed) {
                inner.push_back(wrap_dim(dim, rank_of(n)));
            }
            for (int i = 0; i < rank_of(n); ++i) {
                if (std::find(inner.begin(), inner.end(), i) == inner.end()) {
                    outer.push_back(i);
                }
            }
            Extents kept;
            Extent length = 1;
            for (int dim : outer) {
                kept.push_back(sizes_of(n)[dim]);
            }
            for (int dim : inner) {
                length = length * sizes_of(n)[dim];
            }
            Dims order = last ? outer : inner;
            order.insert(order.end(), last ? inner.begin() : outer.begin(), last ? inner.end() : outer.end());
            Node *matrix = b.reshape(b.permute(n, order), last ? Extents{product(kept), length} : Extents{length, product(kept)});
            return std::pair(matrix, kept);
        };
        auto [left, rows] = arrange(x, a.integers("dims_self"), true);
        auto [right, columns] = arrange(y, a.integers("dims_other"), false);
        Node *value = b.convert(matmul(b, left, right), dtype_of(x));
        rows.insert(rows.end(), columns.begin(), columns.end());
        return b.reshape(value, rows);
    });
}

}  // namespace tilewright
