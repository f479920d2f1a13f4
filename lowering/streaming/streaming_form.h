// The form of a kernel that streams: two products joined by reductions along the first one's columns which can be rescaled online, found
// in the algorithm's expressions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "lowering/nests/stage_expansion.h"
#include "lowering/streaming/streamed_operand.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// out(batch, row, column) = sum over s of weight(batch, row, s) * value(batch, s, column), where weight is exp(score - maximum over s of
/// score), scaled by factors of the row; totals sum the same exponentials. Expressions are over `axes`, `streamed` and reads of stages.
struct StreamingForm {
    int first = -1, second = -1, maximum = -1;  ///< stages
    std::vector<int> totals;                    ///< stages that sum the exponentials
    std::vector<int> outputs;                   ///< stages that are stored, producers first
    std::vector<std::string> axes;              ///< arguments of the second product; an output's argument i is axis i
    int row = -1, column = -1;                  ///< of the axes
    /// 0 where rows have an axis of their own. Else there is one row: places of the row axis that read the same keys and values, this many,
    /// stand as rows of one tile.
    int group = 0;
    std::string streamed;  ///< the second product's reduction variable
    std::string depth;     ///< name of the first product's reduction variable in `query` and `key`
    Extent streamed_extent, depth_extent;
    StreamedOperand query, key, value;
    Halide::Type type;                ///< of the operands
    Halide::Expr score;               ///< reads the first product as a Call of its stage
    std::vector<Halide::Expr> masks;  ///< where one of them is false the score is -inf; `score` does not hold them
    double scale = 1;                 ///< positive: the score is scale * `score`
    Halide::Expr row_factor;          ///< undefined, or what the weighted sum is multiplied by; reads totals
};

/// Empty where the kernel has another form, or its operands cannot be fetched by the copy unit or multiplied by the matrix unit.
std::optional<StreamingForm> match_streaming(const Algorithm &algorithm, const GpuFacts &facts);

}  // namespace tilewright
