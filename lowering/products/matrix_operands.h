// The operands of products on the matrix unit: which axes each varies along, and how the copy unit fetches its tiles.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lowering/nests/stage_values.h"
#include "lowering/products/pixel_operand.h"
#include "lowering/products/strided_operand.h"
#include "lowering/products/unit_element.h"

namespace tilewright {

struct MatrixOperand {
    UnitElement element = UnitElement::bfloat16;  ///< that is multiplied
    StridedOperand read;                          ///< what the copy unit fetches
    std::optional<PixelOperand> pixels;           ///< where windows read it
    Halide::Expr place;                           ///< where it stands in `value`
    Halide::Expr value;                    ///< over the nest's axes: of an operand that is computed from what is fetched; else undefined
    std::set<std::string> axes;            ///< that the operand varies along
    std::string rows;                      ///< the product's axis that it varies along beside K
    bool transposed = false;               ///< memory runs along `rows` rather than K
    int tile = 0;                          ///< rows of a tile
    std::string name;                      ///< of its tile in shared memory; its descriptor is NAME_map
    std::vector<std::string> coordinates;  ///< axes of the descriptor, innermost first
};

/// Products of one left operand, whose rows are those of the unit, by several right ones.
struct MatrixOperands {
    MatrixOperand left;
    std::vector<MatrixOperand> right;  ///< one a product
    std::string k;                     ///< the axis of the terms that tiles run along
    std::vector<std::string> taps;     ///< other axes of the terms: a step of the product stands at one place of each
    std::vector<std::string> batch;    ///< axes that stand in front of the tiles
    Halide::Type type;                 ///< as which the elements that are multiplied lie in memory
    Halide::Type sum_type;
    bool turned = false;  ///< the unit's rows are the axis along which the output runs
};

/// Gives up with a cause and a repair.
using Refusal = std::function<void(const std::string &cause, const std::string &repair)>;

/// `products` are members of the nest. The unit's columns are the axis along which the output runs; `width` is how wide the unit's tiles
/// are: it tells which operand is the left one where tiles of the output's rows are that wide and those of its columns are not.
MatrixOperands find_matrix_operands(const Kernel &kernel, const Nest &nest, const std::vector<int> &products, std::int64_t width,
                                    bool allows_tf32, StageValues &values, const tile::Launch &launch, const Refusal &refuse);

/// Elements of an axis that one block computes; 0 where the schedule does not split it.
std::int64_t tile_extent(const Nest &nest, const std::string &axis);

}  // namespace tilewright
