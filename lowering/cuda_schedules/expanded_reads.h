// What an expression computes from tensors, with the pure stages between written out.
#pragma once

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

/// Reads of pure stages become what they compute, down to tensors and stages with updates.
Halide::Expr expand_reads(const Algorithm &algorithm, const Halide::Expr &e);

}  // namespace tilewright
