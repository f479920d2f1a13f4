// Expressions of a nest's stages over its buffers: inlined stages are expanded once for each place, kept ones are read.
#pragma once

#include <map>
#include <vector>

#include "lowering/nests/nest.h"
#include "lowering/nests/stage_numbers.h"
#include "lowering/nests/storage.h"
#include "lowering/passes/index_order.h"

namespace tilewright {

class StageValues {
public:
    StageValues(const Kernel &kernel, const Nest &nest, const Placement &placement, const Storage &storage, tile::Launch &launch);

    /// `e`, an expression of stage `reader`, over the nest's axes. Reads of `reader` itself become reads of `itself` where that is given.
    Halide::Expr evaluate(const Halide::Expr &e, const Substitution &environment, int reader, const tile::Buffer *itself = nullptr);
    /// From now on the member's value is read from `buffer` at `place`.
    void keep(int stage, const tile::Buffer &buffer, std::vector<Halide::Expr> place);
    /// A tile in shared memory: element (i, j, …) of the stage lies at buffer[i - origin[0], …].
    void keep_tile(int stage, const tile::Buffer &buffer, std::vector<Halide::Expr> origin);
    /// Adds the buffer to the launch where it is not there yet.
    const tile::Buffer &use(const tile::Buffer &buffer);

private:
    struct Kept {
        tile::Buffer buffer;
        std::vector<Halide::Expr> place;
        bool is_tile = false;
    };
    class Rewrite;

    Halide::Expr read_stage(const Halide::Internal::Call *call, const std::vector<Halide::Expr> &indices, int reader);

    const Kernel &kernel_;
    const StageNumbers numbers_;
    const Nest &nest_;
    const Placement &placement_;
    const Storage &storage_;
    tile::Launch &launch_;
    std::map<int, Kept> kept_;
    std::map<std::pair<int, int>, std::map<std::vector<Halide::Expr>, Halide::Expr, IndexOrder>> expanded_;
};

}  // namespace tilewright
