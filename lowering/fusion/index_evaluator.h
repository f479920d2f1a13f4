// Evaluates integer index expressions at many points at once.
#pragma once

#include <Halide.h>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lowering/fusion/sample_points.h"

namespace tilewright {

/// Each shared node is evaluated once. The columns must outlive it.
class IndexEvaluator {
public:
    using Values = std::vector<std::int64_t>;

    IndexEvaluator(const SamplePoints::Columns &columns, std::size_t count) : columns_(columns), count_(count) {}

    /// nullptr where the expression reads a tensor or an unknown variable.
    const Values *of(const Halide::Expr &e);

private:
    using Result = std::optional<Values>;

    Result node(const Halide::Expr &e);
    template<typename Node, typename Function> Result binary(const Halide::Expr &e, Function function);
    Result negation(const Halide::Internal::Not &op);
    Result select(const Halide::Internal::Select &op);
    Result primitive(const Halide::Internal::Call &op);

    const SamplePoints::Columns &columns_;
    const std::size_t count_;
    std::unordered_map<const Halide::Internal::IRNode *, Result> memo_;
};

}  // namespace tilewright
