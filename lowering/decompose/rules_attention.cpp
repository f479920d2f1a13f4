// Scaled dot-product attention.
#include <cmath>
#include <limits>

#include "lowering/decompose/attention_mask.h"
#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Each head of keys or values serves as many heads of queries.
Node *repeat_heads(Builder &b, Node *x, const Extent &heads) {
    const int dim = rank_of(x) - 3;
    const Extent own = sizes_of(x)[dim];
    if (own == heads) {
        return x;
    }
    Extents spread = sizes_of(x);
    Extents joined = sizes_of(x);
    spread.insert(spread.begin() + dim + 1, floor_div(heads, own));
    joined[dim] = heads;
    return b.reshape(b.broadcast(b.unsqueeze(x, dim + 1), spread), joined);
}

Node *with_batch(Builder &b, Node *x, Extents batch) {
    batch.insert(batch.end(), sizes_of(x).end() - 2, sizes_of(x).end());
    return b.broadcast(x, batch);
}

Extents batch_of(const Node *x) { return Extents(sizes_of(x).begin(), sizes_of(x).end() - 2); }

struct Attention {
    Node *value, *logsumexp;
};

/// Weights are formed in the accumulator's type and rounded for the second product; the division by their sum comes last, so that keys
/// can stream by. A row without keys gives zeros.
Attention attend(Builder &b, const Arguments &a) {
    Node *query = a.tensor("query");
    Node *key = a.tensor("key");
    Node *value = a.tensor("value");
    if (a.real("dropout_p", 0) != 0) {
        a.refuse("attention with dropout draws random numbers, which is not supported; export the model in eval mode");
    }
    const DType type = dtype_of(query);
    if (a.flag("enable_gqa", false)) {
        const Extent heads = sizes_of(query)[rank_of(query) - 3];
        key = repeat_heads(b, key, heads);
        value = repeat_heads(b, value, heads);
    }
    const Extents batch = broadcast_shapes(broadcast_shapes(batch_of(query), batch_of(key)), batch_of(value));
    query = with_batch(b, query, batch);
    key = with_batch(b, key, batch);
    value = with_batch(b, value, batch);
    const int rank = rank_of(query);
    const DType computed = accumulator_type(type);
    Node *scores = b.dot(query, b.transpose(key, rank - 2, rank - 1), computed);
    const Extent width = sizes_of(query).back();
    if (std::optional<double> scale = a.optional_real("scale")) {
        scores = b.mul(scores, *scale);
    } else if (width.is_constant()) {
        scores = b.mul(scores, 1 / std::sqrt(static_cast<double>(width.value())));
    } else {
        scores = b.mul(scores, b.rsqrt(b.full({}, width, computed)));
    }
    scores = masked_scores(b, a, scores);
    const Dims along = {rank - 1};
    const bool may_be_empty = a.has(mask_name(a));
    Node *largest = b.amax(scores, along, true);
    if (may_be_empty) {
        largest = b.where(b.eq(largest, -infinity), 0.0, largest);
    }
    Node *weight = b.exp(b.sub(scores, largest));
    Node *total = b.sum(weight, along, true);
    Node *logsumexp = b.squeeze(b.add(b.log(total), largest), along);
    if (may_be_empty) {
        total = b.where(b.eq(total, 0.0), 1.0, total);
    }
    Node *sum = b.dot(b.convert(weight, type), value, computed);
    return {b.convert(b.div(sum, total), type), logsumexp};
}

}  // namespace

void add_attention_rules(RuleTable &table) {
    table.add("aten.scaled_dot_product_attention.default", [](Builder &b, const Arguments &a) { return attend(b, a).value; });
    table.add({"aten._scaled_dot_product_flash_attention_for_cpu.default", "aten._scaled_dot_product_efficient_attention.default",
               "aten._scaled_dot_product_flash_attention.default", "aten._scaled_dot_product_cudnn_attention.default"},
              [](Builder &b, const Arguments &a) -> Results {
                  const Attention attention = attend(b, a);
                  Results results = {attention.value, attention.logsumexp};
                  results.resize(9, nullptr);  // seeds and lengths, which only backward passes read
                  return results;
              });
}

}  // namespace tilewright
