// Puts the statements of one block behind another's.
#pragma once

#include <iterator>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

inline void append(tile::Block &to, tile::Block from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace tilewright
