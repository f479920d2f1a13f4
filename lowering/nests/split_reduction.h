// A reduction whose terms are spread over blocks: blocks leave partial results, and a launch of its own combines them in a fixed order.
#pragma once

#include "dsl/algorithm/combiner.h"
#include "lowering/nests/nest_work.h"

namespace tilewright {

void add_split(NestWork &work, const Member &member, const Fold &fold, const tile::CombinerDefinition &definition,
               const std::vector<Halide::Expr> &values);

/// Whether a fold starts from nothing but the combiner's identity.
bool is_identity(const std::vector<Halide::Expr> &initial, const std::vector<Halide::Expr> &identity);

}  // namespace tilewright
