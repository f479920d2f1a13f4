// Stages as expressions over the axes of the kernel's widest stage: reads of pure stages are expanded.
#pragma once

#include <Halide.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "lowering/passes/index_order.h"

namespace tilewright {

/// Expands reads of pure stages, each place once; reads of tensors and of reductions stay.
class StageExpander : public Halide::Internal::IRGraphMutator {
public:
    using Environment = std::map<std::string, Halide::Expr>;
    using Known = std::map<std::pair<std::string, int>, std::map<std::vector<Halide::Expr>, Halide::Expr, IndexOrder>>;

    /// `environment` says what variables are; `known` keeps what was expanded.
    StageExpander(const Algorithm &algorithm, const Environment &environment, Known &known)
        : algorithm_(algorithm), environment_(environment), known_(known) {}

private:
    using Halide::Internal::IRGraphMutator::visit;
    Halide::Expr visit(const Halide::Internal::Variable *op) override;
    Halide::Expr visit(const Halide::Internal::Call *op) override;

    const Algorithm &algorithm_;
    const Environment &environment_;
    Known &known_;
};

/// What an expression of a stage computes from tensors and reductions: `environment` says what its arguments are, where they are to change.
Halide::Expr expand_stages(const Algorithm &algorithm, const Halide::Expr &e, const StageExpander::Environment &environment = {});

/// Axis i, or 0 where the stage has a single place there.
std::map<std::string, Halide::Expr> places_on_axes(const Stage &stage, const std::vector<std::string> &axes);

}  // namespace tilewright
