// Tiles in shared memory that all threads of a block fill before they read them: the box of places that the block reads.
#pragma once

#include <functional>
#include <optional>

#include "lowering/nests/nest_work.h"

namespace tilewright {

/// Places origin[i] … origin[i] + extents[i] - 1 along each dimension.
struct TileRegion {
    std::vector<Halide::Expr> origin;
    std::vector<std::int64_t> extents;
};

/// Serial loops outside of the place where a tile is made, and that place itself.
std::set<std::string> loops_around_tile(const Nest &nest, const std::string &anchor, const ScheduledStage &tile);

/// The expression with each axis as the sum of its leaves.
Halide::Expr over_leaves(const Nest &nest, const Halide::Expr &e);

/// The box around `places` over all threads and over all loops of the block but those in `around`. Empty where a place does not move with
/// its loops by constants.
std::optional<TileRegion> tile_region(const Nest &nest, const std::vector<std::vector<Halide::Expr>> &places,
                                      const std::set<std::string> &around);

/// Shared memory for the region, laid out so that neighbouring threads, whose places are `place`, read neighbours. `filled_along`: the
/// dimension along which neighbours write it; where that is another one, rows are a word longer, so that they begin in different banks.
tile::Buffer tile_buffer(NestWork &work, const std::string &name, Halide::Type type, const TileRegion &region,
                         const std::vector<Halide::Expr> &place, int filled_along);

/// Adds the piece in which the block's threads share out the places of the tile: `value_at` of each that is inside of `extents`, zero of
/// the others. `order`: dimensions from the slowest to the fastest that the threads go through. Gives the piece's index.
int fill_tile(NestWork &work, const tile::Buffer &tile, const TileRegion &region, const std::vector<Extent> &extents,
              const std::vector<int> &order, const std::set<std::string> &around,
              const std::function<Halide::Expr(const std::vector<Halide::Expr> &)> &value_at);

}  // namespace tilewright
