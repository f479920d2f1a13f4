#include "lowering/decompose/attention_mask.h"

#include <limits>

namespace tilewright {

const char *mask_name(const Arguments &a) { return a.has("attn_bias") ? "attn_bias" : "attn_mask"; }

Node *masked_scores(Builder &b, const Arguments &a, Node *scores) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (Node *mask = a.optional_tensor(mask_name(a))) {
        scores = dtype_of(mask) == DType::boolean ? b.where(mask, scores, -infinity) : b.add(scores, b.convert(mask, dtype_of(scores)));
    }
    if (a.flag("is_causal", false)) {
        const int rank = rank_of(scores);
        Node *row = b.unsqueeze(b.iota(sizes_of(scores)[rank - 2]), 1);
        scores = b.where(b.le(b.iota(sizes_of(scores)[rank - 1]), row), scores, -infinity);
    }
    return scores;
}

}  // namespace tilewright
