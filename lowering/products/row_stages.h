// What a product's epilogue computes before it stores: values that it keeps in registers, and reductions along the rows of the product.
#pragma once

#include <string>
#include <vector>

#include "lowering/nests/stage_values.h"
#include "lowering/products/matrix_epilogue.h"
#include "lowering/products/matrix_operands.h"

namespace tilewright {

/// Rows of tiles whose columns lie in several blocks are combined by the blocks of a cluster.
class RowStages {
public:
    RowStages(const Kernel &kernel, const Nest &nest, tile::Launch &launch, StageValues &values)
        : kernel_(kernel), nest_(nest), launch_(launch), values_(values) {}

    /// Where a member that is no product reduces, all members but the anchor are kept: from now on they are read from registers.
    void keep(const std::vector<int> &products, const FragmentShape &shape, const Refusal &refuse);
    bool empty() const { return stages_.empty(); }
    /// The member's value as it is kept; undefined where it is not.
    Halide::Expr kept(int stage, int element) const;
    /// What is computed for each element of the tile.
    std::vector<Halide::Expr> element_values() const;
    int reductions() const;
    /// Of shared memory, where so many blocks share the rows.
    std::int64_t exchange_bytes(const FragmentShape &shape, int blocks) const;
    void declare(const FragmentShape &shape, int blocks);
    /// Once a block, by all threads.
    tile::Block begin(const FragmentShape &shape, int blocks) const;
    /// For the `round`-th tile of the block.
    tile::Block statements(const FragmentShape &shape, int blocks, const Halide::Expr &round) const;
    /// After the last tile: nobody reads this block's shared memory any more.
    tile::Block finish(int blocks) const;

private:
    enum class Spread { elements, rows, reduced };
    struct Stage {
        int stage = -1;
        Spread spread = Spread::elements;
        tile::Buffer buffer;
        std::vector<Halide::Expr> values;  ///< of a reduction: its terms
        tile::CombinerDefinition combiner;
    };

    void keep_one(const Member &member, const FragmentShape &shape, const Refusal &refuse);
    tile::Buffer registers(const Stage &stage, const FragmentShape &shape) const;
    tile::Block guarded(tile::Block body, const FragmentShape &shape) const;
    tile::Block over_rows(tile::Block body, const FragmentShape &shape) const;
    tile::Block over_elements(tile::Block body, tile::Level lanes, const FragmentShape &shape) const;
    tile::Block reduce(const Stage &stage, const FragmentShape &shape) const;
    static std::vector<Halide::Expr> row_place();
    static std::vector<Halide::Expr> element_place();

    const Kernel &kernel_;
    const Nest &nest_;
    tile::Launch &launch_;
    StageValues &values_;
    std::vector<Stage> stages_;
};

}  // namespace tilewright
