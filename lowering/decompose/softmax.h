// Softmax as core operators: what softmax, losses and attention share.
#pragma once

#include "lowering/decompose/builder.h"

namespace tilewright {

/// exp(x - max) / sum along one dimension, of float32 or float64.
Node *softmax(Builder &b, Node *x, int dim);
Node *log_softmax(Builder &b, Node *x, int dim);

}  // namespace tilewright
