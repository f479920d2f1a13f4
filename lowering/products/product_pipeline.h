// The two halves of a product on the matrix unit: a warp that fetches tiles, and warpgroups that multiply them.
#pragma once

#include "lowering/products/product_plan.h"
#include "lowering/products/row_stages.h"

namespace tilewright {

/// `blocks` are the launch's.
class ProductPipeline {
public:
    ProductPipeline(const ProductPlan &plan, const Nest &nest, const GpuFacts &facts, Extent blocks)
        : plan_(plan), nest_(nest), facts_(facts), blocks_(std::move(blocks)) {}

    tile::Block produce() const;
    tile::Block consume(const MatrixEpilogue &epilogue, const RowStages &rows) const;

private:
    /// The tiles of this block, one after another. `body` sees m_tile, n_tile and the batches' places.
    tile::Block over_tiles(tile::Block body) const;
    static tile::Statement rolled(const std::string &name, const Extent &extent, tile::Block body);
    tile::Statement over_steps(tile::Block step) const;
    Halide::Expr iteration(const Halide::Expr &step) const;
    tile::Block begin_step() const;
    /// Where the step stands along the axes that are summed over: taps run fastest.
    tile::Block places_of_step() const;
    tile::Block fetch(const MatrixOperand &operand) const;
    tile::Block fetch_tile(const MatrixOperand &operand) const;
    /// Which of an operand's tiles in shared memory a step stands at: a slot, or of what stays a part.
    Halide::Expr tile_number(const MatrixOperand &operand) const;
    /// Statements for each tap that one step multiplies.
    tile::Block over_window(tile::Block body) const;
    tile::Block multiply() const;
    /// The right operand's tiles, all terms of them.
    tile::Block fetch_once() const;
    /// What the register file leaves to consumers beside a producer with 24, in multiples of 8 (PTX ISA, "setmaxnreg").
    int consumer_registers() const;

    const ProductPlan &plan_;
    const Nest &nest_;
    const GpuFacts &facts_;
    const Extent blocks_;
};

}  // namespace tilewright
