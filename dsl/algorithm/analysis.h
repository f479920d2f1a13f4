// What the lowering asks of a stage: its form, what it reads and where.
#pragma once

#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"

namespace tilewright {

Form classify(const Stage &stage);

/// One read of a tensor input or of another stage, inside a stage's definitions. Equal reads are listed once.
struct Read {
    std::string producer;
    bool from_input = false;  ///< a TensorInput rather than a stage
    int tuple_index = 0;
    std::vector<Halide::Expr> indices;  ///< over the reading stage's arguments and RVars
};
std::vector<Read> reads_of(const Stage &stage);

/// The stage's right-hand sides: the pure definition's for a pointwise stage, the fold's terms otherwise.
std::vector<Halide::Expr> terms_of(const Stage &stage);

/// index = sum(coefficient * variable) + constant, where it has that form with constant coefficients.
struct Affine {
    std::vector<std::pair<std::string, std::int64_t>> terms;  ///< sorted by name, no zeros
    Halide::Expr constant;                                    ///< free of the stage's variables
};
std::optional<Affine> as_affine(const Halide::Expr &index, const std::vector<std::string> &variables);

}  // namespace tilewright
