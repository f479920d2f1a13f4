// Which keys a query of attention sees: masks, biases and what is_causal says, for attention and its gradient.
#pragma once

#include "lowering/decompose/rules.h"

namespace tilewright {

/// Name of the argument with the mask: the kernels for one device call it a bias.
const char *mask_name(const Arguments &a);

/// Scores [..., queries, keys] with a mask added, or -inf where it or is_causal hides a key.
Node *masked_scores(Builder &b, const Arguments &a, Node *scores);

}  // namespace tilewright
