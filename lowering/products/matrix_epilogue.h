// What becomes of the sums that the matrix unit leaves in registers: stages over the product's axes, stored through shared memory by the
// copy unit where the output's strides allow it.
#pragma once

#include <string>
#include <vector>

#include "lowering/nests/stage_values.h"
#include "lowering/products/pixel_walk.h"
#include "lowering/products/strided_operand.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// A value that is stored, at each place that a thread holds sums of.
struct MatrixResult {
    tile::Buffer target;
    std::vector<Halide::Expr> places;
    Halide::Expr value;
};

/// How the sums are spread, and in which strips they are stored.
struct FragmentShape {
    std::string rows, columns;  ///< axes
    std::vector<std::string> batch;
    int warpgroups = 1;
    int chunks = 1;  ///< of 64 rows, a warpgroup
    int width = 0;   ///< columns of the tile
    int parts = 1;   ///< blocks of a cluster that each finish a share of the columns
    int lanes = 2;   ///< neighbours that a thread holds
    int strip = 0;   ///< columns that are stored at a time

    int own_width() const { return width / parts; }
    int strips() const { return own_width() / strip; }
    int blocks() const { return strip / (4 * lanes); }
};

class MatrixEpilogue {
public:
    /// `kept` is computed for each element before.
    MatrixEpilogue(const Nest &nest, tile::Launch &launch, StageValues &values, std::vector<MatrixResult> results,
                   std::vector<Halide::Expr> kept);

    /// Which results the copy unit can store, neighbours a thread and the strips that follow from them. `free_bytes` is the shared memory
    /// left.
    void choose(FragmentShape &shape, std::int64_t free_bytes);
    /// Leaves of the two axes inside of a tile, outermost first.
    static std::vector<tile::Leaf> row_leaves(const FragmentShape &shape);
    static std::vector<tile::Leaf> column_leaves(const FragmentShape &shape);
    /// Buffers and descriptors of what is staged; the axes have their leaves by now.
    void declare(const FragmentShape &shape);
    /// For one tile.
    tile::Block statements(const FragmentShape &shape) const;
    /// After the last tile.
    tile::Block finish() const;

private:
    struct Staged {
        MatrixResult result;
        StridedOperand place;
        std::optional<PixelLines> lines;       ///< where the rows are pixels, with more places in a line than the tensor has
        std::string staging;                   ///< buffer; its descriptor is NAME_map
        std::vector<std::string> coordinates;  ///< columns, rows, batches
        int bytes = 2;
        bool by_rows = false;  ///< rows begin where the copy unit cannot store: threads do

        /// The copy unit stores no box of which a part lies in front of the tensor, as those that reach from line to line would.
        bool by_threads() const { return by_rows || lines; }
    };

    std::optional<Staged> stage(const MatrixResult &result, const FragmentShape &shape) const;
    std::optional<Staged> stage_lines(const MatrixResult &result, const FragmentShape &shape) const;
    bool stores_rows(const Staged &staged) const;
    tile::Buffer descriptor(const Staged &staged, const FragmentShape &shape) const;
    tile::Statement store(const Staged &staged, const FragmentShape &shape) const;
    bool copies() const;  ///< whether the copy unit stores any of them
    bool wants_neighbours(const FragmentShape &shape) const;
    int slots(const FragmentShape &shape) const;
    Halide::Expr slot(const FragmentShape &shape) const;
    Halide::Expr first_element(const Staged &staged, const FragmentShape &shape) const;
    static Halide::Expr strip_place(const std::string &axis, const FragmentShape &shape);
    std::vector<Halide::Expr> staged_place(const Staged &staged, const FragmentShape &shape) const;
    bool needs_guard(const std::string &axis) const;
    tile::Block guarded(tile::Block body, const FragmentShape &shape) const;

    const Nest &nest_;
    tile::Launch &launch_;
    StageValues &values_;
    const std::vector<Halide::Expr> kept_;
    std::vector<MatrixResult> direct_;
    std::vector<Staged> staged_;
};

}  // namespace tilewright
