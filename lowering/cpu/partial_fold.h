// Reductions taken apart: into partial results along a loop that rfactor keeps, and sums of products as fused multiply-adds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/cpu/legalize.h"

namespace tilewright {

/// The factors of a floating-point sum of products; empty for any other stage.
std::optional<std::pair<Halide::Expr, Halide::Expr>> product_of(const Fold &fold);
std::optional<std::pair<Halide::Expr, Halide::Expr>> product_of(const Stage &stage);

/// accumulator + a * b in Halide's own operators, which LLVM contracts and may reorder. Everything else stays strict.
Halide::Expr relaxed_product(const Halide::Expr &accumulator, const std::pair<Halide::Expr, Halide::Expr> &factors, Legalizer &legalizer);

/// An update's new tuple, with a dependency of every element on the first that Halide sees. Halide 21 looks for reads of a tuple's other
/// elements without entering calls; strict arithmetic is all calls, and it would store one element before it computes the next.
std::vector<Halide::Expr> with_visible_dependencies(std::vector<Halide::Expr> values, const std::vector<Halide::Expr> &accumulator);

/// The loops of STAGE_partial: its arguments (the last is the loop that stayed in the stage), the domain of those that moved to it, and
/// what the stage's reduction variables are in terms of both. One Func may use it: Halide ties a domain to the Func that it defines.
struct PartialLoops {
    std::vector<std::string> arguments;
    std::vector<Halide::Expr> places;
    Halide::Internal::ReductionDomain domain;
    std::map<std::string, Halide::Expr> reductions;
};
PartialLoops partial_loops(const ScheduledStage &scheduled, const ScheduledStage &owner_scheduled);

/// Defines STAGE_partial: the stage's fold over the loops that moved to it, for each value of the loop that stayed.
void define_partial(Halide::Func partial, const Stage &owner, PartialLoops loops, Legalizer &legalizer);

/// Number of parts that are folded in one expression without a loop; nothing where there are too many.
std::optional<std::int64_t> parts_of_tree(const ScheduledStage &scheduled);
/// The fold of the parts as a balanced tree.
std::vector<Halide::Expr> fold_parts(Combiner combiner, std::vector<std::vector<Halide::Expr>> parts);

/// Defines the stage as the fold of its partial results. True where it is one balanced expression without a loop.
bool define_from_partial(Halide::Func func, const Stage &stage, const ScheduledStage &scheduled, const Halide::Internal::Function &partial,
                         Legalizer &legalizer);

}  // namespace tilewright
