// Softmax and its kin, and distances between rows.
#include <limits>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"
#include "lowering/decompose/softmax.h"

namespace tilewright {

Node *softmax(Builder &b, Node *x, int dim) {
    if (rank_of(x) == 0) {
        return b.reshape(softmax(b, b.flatten(x), 0), {});
    }
    Node *raised = b.exp(b.sub(x, b.amax(x, {dim}, true)));
    return b.div(raised, b.sum(raised, {dim}, true));
}

Node *log_softmax(Builder &b, Node *x, int dim) {
    if (rank_of(x) == 0) {
        return b.reshape(log_softmax(b, b.flatten(x), 0), {});
    }
    Node *shifted = b.sub(x, b.amax(x, {dim}, true));
    return b.sub(shifted, b.log(b.sum(b.exp(shifted), {dim}, true)));
}

namespace {

bool is_empty(const Node *x) {
    for (const Extent &size : sizes_of(x)) {
        if (size == Extent(0)) {
            return true;
        }
    }
    return false;
}

Rule softmax_rule(Node *(*function)(Builder &, Node *, int)) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        DType type = a.dtype("dtype").value_or(dtype_of(self));
        if (a.flag("half_to_float", false)) {
            type = DType::float32;
        }
        if (is_empty(self)) {
            return b.convert(self, type);
        }
        Node *x = b.convert(a.has("dtype") ? b.convert(self, type) : self, compute_type(type));
        return b.convert(function(b, x, a.dim("dim", rank_of(self))), type);
    };
}

/// Rows of nothing but -inf give zeros.
Node *safe_softmax(Builder &b, Node *x, int dim) {
    const double infinity = std::numeric_limits<double>::infinity();
    Node *masked = b.reduce("all", b.eq(x, -infinity), {dim}, true);
    return b.where(masked, 0.0, softmax(b, x, dim));
}

/// |x1 - x2 + eps|_p along the last dimension.
Node *pairwise_distance(Builder &b, const Arguments &a) {
    Node *difference = b.apply("aten.sub.Tensor", {{"self", a.tensor("x1")}, {"other", a.tensor("x2")}}).front();
    Node *moved = b.apply("aten.add.Scalar", {{"self", difference}, {"other", a.real("eps", 1e-6)}}).front();
    return b
        .apply("aten.linalg_vector_norm.default",
               {{"self", moved}, {"ord", a.real("p", 2)}, {"dim", ArgumentList{Extent(-1)}}, {"keepdim", a.flag("keepdim", false)}})
        .front();
}

Node *cosine_similarity(Builder &b, const Arguments &a) {
    Node *first = a.tensor("x1");
    Node *second = a.tensor("x2");
    const DType type = result_type({first, second});
    const DType computed = compute_type(type);
    const Extents size = broadcast_shapes(sizes_of(first), sizes_of(second));
    const int dim = a.dim("dim", static_cast<int>(size.size()), 1);
    const double eps = a.real("eps", 1e-8);
    const auto unit = [&](Node *x) {
        Node *v = b.broadcast(b.convert(x, computed), size);
        return b.div(v, b.maximum(b.sqrt(b.sum(b.mul(v, v), {dim}, true)), eps));
    };
    return b.convert(b.sum(b.mul(unit(first), unit(second)), {dim}), type);
}

/// Distances between all pairs of rows.
Node *cdist(Builder &b, const Arguments &a) {
    Node *x1 = a.tensor("x1");
    Node *x2 = a.tensor("x2");
    Node *difference = b.sub(b.unsqueeze(x1, rank_of(x1) - 1), b.unsqueeze(x2, rank_of(x2) - 2));
    return b.apply("aten.linalg_vector_norm.default", {{"self", difference}, {"ord", a.real("p", 2)}, {"dim", ArgumentList{Extent(-1)}}})
        .front();
}

}  // namespace

void add_softmax_rules(RuleTable &table) {
    table.add({"aten.softmax.int", "aten._softmax.default", "aten.special_softmax.int"}, softmax_rule(softmax));
    table.add({"aten.log_softmax.int", "aten._log_softmax.default", "aten.special_log_softmax.int"}, softmax_rule(log_softmax));
    table.add("aten._safe_softmax.default", softmax_rule(safe_softmax));
    table.add("aten._softmax_backward_data.default", [](Builder &b, const Arguments &a) {
        Node *output = b.to_compute(a.tensor("output"));
        Node *product = b.mul(b.convert(a.tensor("grad_output"), dtype_of(output)), output);
        Node *sum = b.sum(product, {a.dim("dim", rank_of(output))}, true);
        return b.convert(b.sub(product, b.mul(output, sum)), a.dtype("input_dtype").value_or(dtype_of(a.tensor("output"))));
    });
    table.add("aten._log_softmax_backward_data.default", [](Builder &b, const Arguments &a) {
        Node *output = b.to_compute(a.tensor("output"));
        Node *gradient = b.convert(a.tensor("grad_output"), dtype_of(output));
        Node *sum = b.sum(gradient, {a.dim("dim", rank_of(output))}, true);
        return b.convert(b.sub(gradient, b.mul(b.exp(output), sum)), a.dtype("input_dtype").value_or(dtype_of(a.tensor("output"))));
    });
    table.add("aten.pairwise_distance.default", pairwise_distance);
    table.add("aten.cosine_similarity.default", cosine_similarity);
    table.add({"aten.cdist.default", "aten._cdist_forward.default", "aten._euclidean_dist.default"}, cdist);
}

}  // namespace tilewright
