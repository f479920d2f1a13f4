// Tensors that the schedule copies into shared memory for a stage that reads a window of them or reads them across.
#pragma once

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Replaces, in the terms of `stage`, reads of tensors whose copy the schedule puts into shared memory, TENSOR.in(STAGE), by reads of
/// tiles. UserError where the block's part of the tensor is no box.
void stage_reads(NestWork &work, const Stage &stage, std::vector<Halide::Expr> &terms);

/// The places that the terms read of a tensor, one for each read.
std::vector<std::vector<Halide::Expr>> places_read(const std::vector<Halide::Expr> &terms, const std::string &tensor);

/// UserError where a copy that the schedule asks for has not been made.
void require_staged(const NestWork &work, const Stage &stage);

}  // namespace tilewright
