// The score function between two products that are streamed: masks where a step needs them, tensors loaded ahead, everything else at every
// place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowering/streaming/streaming_launch.h"

namespace tilewright {

class StreamedScores {
public:
    /// `masks`: where one is false the score is -inf. Adds to the launch the registers that hold what is loaded ahead.
    StreamedScores(StreamingLaunch &stream, std::vector<Halide::Expr> masks);

    /// Tensors of the score function that the copy unit brings to shared memory, a tile a step.
    const std::vector<StreamedTile> &tiles() const { return tiles_; }
    /// While products are under way: what the step's scores will read. Tiles are in their slots `slot`.
    tile::Block load_ahead(const Halide::Expr &step, const Halide::Expr &slot);
    /// The products in `scores` become scores, but for the form's scale.
    tile::Block change();

private:
    tile::Block score_loop(tile::Block body) const;
    tile::Statement store_score(const Halide::Expr &value) const;
    Halide::Expr old_score() const;
    Halide::Expr passes_everywhere(const Halide::Expr &mask);
    void split_masks();
    tile::Block at_every_place(const Halide::Expr &value, const std::function<tile::Statement()> &statement);
    void find_held();
    std::optional<StreamedTile> tile_of(const Halide::Internal::Call *read) const;
    const std::string *held_name(const Halide::Internal::Call *call) const;
    bool reads_unheld_along(const Halide::Expr &e, const std::string &axis) const;

    StreamingLaunch &stream_;
    std::vector<Halide::Expr> masks_, masks_by_range_;
    Halide::Expr changed_;                                    ///< the score function, with masks that no range tells
    bool changes_ = false;                                    ///< it is more than the product itself
    std::vector<std::pair<Halide::Expr, std::string>> held_;  ///< reads of tensors, and the registers that hold them
    std::vector<StreamedTile> tiles_;                         ///< of the first of held_
    bool loading_ = false;                                    ///< reads are those of memory, not of the registers
};

}  // namespace tilewright
