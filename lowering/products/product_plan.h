// How products run on the matrix unit: tiles, slots of the pipeline, blocks that share terms, as their schedule asks for it.
#pragma once

#include <algorithm>

#include "dsl/schedule/loop_nest.h"
#include "lowering/nests/storage.h"
#include "lowering/products/matrix_epilogue.h"
#include "lowering/products/matrix_operands.h"

namespace tilewright {

struct ProductPlan {
    static constexpr int chunk = 64;       ///< rows of a warpgroup's multiply, and columns of a transposed chunk
    static constexpr int warpgroup = 128;  ///< threads

    /// Elements of a tile along K: 128 bytes, one swizzled row; and those that one instruction takes.
    int depth() const { return 128 / operands.type.bytes(); }
    int unit_depth() const { return depth() / 4; }

    MatrixOperands operands;
    FragmentShape shape;
    int stages = 4, raster = 8;
    int parts = 1;                    ///< blocks that share a tile's terms
    int row_blocks = 1;               ///< blocks of a cluster that hold the columns of the same rows
    std::int64_t exchange_bytes = 0;  ///< of shared memory, through which they combine what they have of a row
    int residents = 1;                ///< blocks that a multiprocessor holds at once
    bool persistent = false;
    bool sums_apart = false;   ///< each step's products, before they are added to the others
    bool right_stays = false;  ///< shared memory holds all terms of the right operand, for all tiles of the block
    int turns = 1;       ///< parts of a tile, one a warpgroup, that pass through the pipeline in turn: one multiplies while another stores
    std::string window;  ///< axis of taps that one step multiplies together: pixels come once for all of them; "" for none
    int window_taps = 1;
    Extent k_steps = 1, m_tiles = 1, n_tiles = 1, tiles = 1;

    /// Blocks that share terms and are no cluster leave their sums to a second pass.
    bool leaves_partials() const { return parts > 1 && shape.parts == 1; }
    bool is_tap(const std::string &axis) const {
        return std::find(operands.taps.begin(), operands.taps.end(), axis) != operands.taps.end();
    }
    bool stays(const MatrixOperand &operand) const { return right_stays && &operand == &operands.right.front(); }
    /// Registers that hold a product's sums.
    std::string sums_name(std::size_t product) const { return product == 0 ? "sums" : "sums_" + std::to_string(product + 1); }
    /// Rows of an operand that a step multiplies.
    int step_rows(const MatrixOperand &operand) const { return &operand == &operands.left ? operand.tile / turns : operand.tile; }
    bool has_window(const MatrixOperand &operand) const { return operand.pixels && !operand.pixels->window.empty(); }
    /// Rows of an operand's tile in shared memory: those of a step and of what its last windows reach, in whole swizzled atoms.
    int slot_rows(const MatrixOperand &operand) const {
        return (step_rows(operand) + (has_window(operand) ? static_cast<int>(operand.pixels->halo()) : 0) + 7) / 8 * 8;
    }
    /// Tiles of an operand in a slot of the pipeline.
    int slot_tiles(const MatrixOperand &operand) const { return has_window(operand) ? 1 : window_taps; }
    std::int64_t slot_bytes() const;
    std::int64_t staying_bytes() const { return k_steps.value() * window_taps * shape.width * depth() * operands.type.bytes(); }
    /// Elements in memory of a tile's row.
    int row_elements(const MatrixOperand &operand) const { return depth() / operand.read.packing; }
    int threads() const { return (shape.warpgroups + 1) * warpgroup; }
    /// Of a thread, before warpgroups share them out: what fits a multiprocessor, in multiples of 8.
    int registers_at_launch(const GpuFacts &facts) const {
        return std::min(facts.registers_per_multiprocessor / (threads() * residents) / 8 * 8, 248);
    }
    /// Of shared memory, beside the pipeline.
    std::int64_t free_bytes(const GpuFacts &facts) const;
};

/// Reads the schedule of `stage`, the first product, into the plan, whose operands are known. UserError where it asks for what cannot be.
void read_product_schedule(ProductPlan &plan, const Kernel &kernel, const Nest &nest, const Stage &stage, const ScheduledKernel &schedule,
                           Storage &storage, const GpuFacts &facts, const Refusal &refuse);

}  // namespace tilewright
