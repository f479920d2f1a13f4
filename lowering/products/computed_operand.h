// An operand of a product on the matrix unit that threads compute from what the copy unit fetched: into registers, as the unit takes them.
#pragma once

#include "lowering/products/matrix_epilogue.h"
#include "lowering/products/matrix_operands.h"

namespace tilewright {

/// Inside of a step along the terms: slices of 16, halves of 8, lanes of a group of four, neighbours.
std::vector<tile::Leaf> computed_term_leaves();
/// What was fetched, "NAME_read.vec", and what is multiplied, "NAME_values".
std::vector<tile::Buffer> computed_operand_buffers(const MatrixOperand &operand, Halide::Type type, const FragmentShape &shape);
/// The thread's share of the fetched tile comes to registers.
tile::Statement load_fetched(const MatrixOperand &operand, const FragmentShape &shape, const Nest &nest);
/// The operand's value at each place of the share; 0 beyond the extents. `k` is the axis of the terms.
tile::Statement compute_operand(const MatrixOperand &operand, const std::string &k, Halide::Type type, const FragmentShape &shape,
                                const Nest &nest);
/// The operand's value with 0 in place of what is fetched: what else it reads.
Halide::Expr without_fetched(const MatrixOperand &operand);

}  // namespace tilewright
