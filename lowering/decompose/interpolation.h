// Kernels of interpolation that resizing and grid sampling share.
#pragma once

#include "lowering/decompose/builder.h"

namespace tilewright {

/// Keys' cubic kernel for distances up to 1, and from 1 to 2. PyTorch takes a = -0.75, and -0.5 where it antialiases.
Node *cubic_near(Builder &b, Node *t, double a = -0.75);
Node *cubic_far(Builder &b, Node *t, double a = -0.75);

}  // namespace tilewright
