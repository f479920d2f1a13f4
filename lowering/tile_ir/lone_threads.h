// Launches that leave a GPU idle: one thread does what a block could share.
#pragma once

#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright::tile {

/// Names of the launches whose blocks have one thread for many elements: stages whose loops no directive binds.
std::vector<std::string> lone_threads(const Program &program);

}  // namespace tilewright::tile
