// Schedules of products and convolutions outside the matrix unit: which axes each operand varies along, tiles of sums in registers, and
// products with few rows as streams of the large operand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"

namespace tilewright {

/// A stage that sums products of two operands.
struct RegisterProduct {
    std::string stage;
    std::vector<std::string> outputs;  ///< stored stages that follow element by element and share the pass; may be empty
    std::vector<int> planes;           ///< arguments that both operands vary along, or neither, or too many columns
    std::vector<int> rows, columns;    ///< arguments of one operand alone; the result runs along the last column in memory
    Extent batch = 1, m = 1, n = 1, k = 1;
    std::vector<std::string> variables;  ///< of the reduction, fastest first
    std::vector<Extent> terms;           ///< extents of the variables
    bool rows_along_k = false;           ///< the operand of the rows lies along K in memory
    bool columns_along_k = false;
    bool direct = false;                    ///< both operands are plain reads with one variable of reduction
    bool streams = false;                   ///< likewise, or computed from such reads and smaller tensors
    std::string row_tensor, column_tensor;  ///< inputs that are read, where direct
    int row_bytes = 4, column_bytes = 4;    ///< of an operand's element in memory
    int sum_bytes = 4;
    bool sums_apart = false;  ///< results keep all bits of float32 sums of many terms
};
std::optional<RegisterProduct> match_register_product(const Kernel &kernel, const std::string &stage);

/// Sums that each thread keeps, threads of a block, and how the terms are walked. Zero rows: not a tile but a stream.
struct RegisterTile {
    int rows = 8, columns = 8;  ///< sums a thread
    int row_threads = 16, column_threads = 16;
    int at_once = 4;      ///< terms a step
    int parts = 1;        ///< blocks that share the terms
    bool staged = false;  ///< operands pass through shared memory, `at_once` terms deep
};
/// One of the operands is read once, by vectors; the other has few rows.
struct ProductStream {
    bool along_k = true;  ///< the large operand lies along K: a warp, or a block, for a row of it
    int lanes = 32;       ///< threads along K; with along_k false, shares of the terms
    int rows = 2;         ///< of the large operand, a thread
    int at_once = 4;      ///< vectors of each row under way
    int parts = 1;
};

/// Few results: several threads share the terms of each.
struct SharedSums {
    int threads = 32;  ///< that share the terms of `variable`; 1: none
    int columns = 8;   ///< results of a block
    std::size_t variable = 0;
    bool along_k = false;  ///< neighbouring threads take neighbouring terms, else neighbouring columns
};

constexpr int vector_bytes = 16;  ///< of the widest access

/// The extent's largest value, at least 1.
std::int64_t most_places(const Extent &extent, const SymbolRanges &symbols);

/// Tiles for the sizes, the most promising first; empty where the result is too small for any.
std::vector<RegisterTile> register_tiles(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts);
std::vector<SharedSums> shared_sums(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts);
std::vector<ProductStream> product_streams(const RegisterProduct &product, const SymbolRanges &symbols, const GpuFacts &facts);

/// Whether the product has so few rows that a stream of its large operand outruns the matrix unit.
bool streams_best(const Kernel &kernel, const std::string &stage, const GpuFacts &facts);

/// Directives of the product and of the outputs that share its pass. Where the terms are split over blocks, outputs are left alone.
void schedule_register_tile(const RegisterProduct &product, const RegisterTile &tile, Directives &into);
void schedule_shared_sums(const RegisterProduct &product, const SharedSums &sums, Directives &into);
void schedule_stream(const RegisterProduct &product, const ProductStream &tile, const SymbolRanges &symbols, Directives &into);

}  // namespace tilewright
