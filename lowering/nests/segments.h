// Orders the work of a nest: which pieces share a serial loop, which must wait until a loop is over, what is recomputed in a later one.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// One piece of work: a value, a fold, a store. Dependencies are indices into the list of pieces and come before it.
struct Piece {
    std::string name;
    std::set<std::string> loops;    ///< leaves inside of which it stands
    std::set<std::string> reduces;  ///< of these, those that must be over before its value is whole
    std::set<std::string> carries;  ///< of these, those along which it carries something that is set before the first begins
    std::vector<int> needs;
    bool keeps_per_iteration = true;  ///< a value held in registers: gone after an iteration of a serial loop
    /// Before the first loop that it reduces or carries along, and after it; given the leaves whose loops stand around.
    std::function<tile::Block(const std::set<std::string> &)> begin, end;
    std::function<tile::Block()> body;
};

struct SegmentLoop {
    std::string name;
    Extent extent;
    tile::Level level;
};

/// Loop nests that do every piece after what it needs. A piece whose value a later run of the same serial loop needs is done again there.
tile::Block arrange(const std::vector<Piece> &pieces, const std::vector<SegmentLoop> &loops);

}  // namespace tilewright
