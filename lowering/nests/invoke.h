// Calls of device primitives as statements of the tile IR.
#pragma once

#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

tile::Invoke::Argument scalar(const Halide::Expr &e);
tile::Invoke::Argument buffer(const std::string &name, std::vector<Halide::Expr> indices = {});
/// `tw::function<templates…>(arguments…)`, which reads and writes the buffers `writes`.
tile::Statement invoke(const std::string &function, std::vector<std::string> templates = {},
                       std::vector<tile::Invoke::Argument> arguments = {}, std::vector<std::string> writes = {});
/// The first statement of a launch with tensors that the bulk copy unit moves.
tile::Statement prefetch_descriptors(const tile::Launch &launch);

}  // namespace tilewright
