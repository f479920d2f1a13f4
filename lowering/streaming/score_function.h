// A score function between two products that are joined by a softmax, taken apart: masks, a constant factor, and the rest.
#pragma once

#include <Halide.h>
#include <vector>

namespace tilewright {

/// score = scale * (all masks ? value : -inf); the scale is positive.
struct ScoreFunction {
    Halide::Expr value;
    std::vector<Halide::Expr> masks;
    double scale = 1;
};
ScoreFunction take_score_apart(const Halide::Expr &score);

}  // namespace tilewright
