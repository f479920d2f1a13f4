// The second pass of a product whose terms are split over blocks: adds up what they left, in a fixed order, and stores what follows.
#pragma once

#include <string>
#include <vector>

#include "lowering/nests/nest.h"
#include "lowering/nests/storage.h"

namespace tilewright {

/// `partials` are scratch tensors [parts, axes of the product…], one for each product. The nest's stages are stored by threads along
/// `columns`.
tile::Launch finish_product(const Kernel &kernel, const Placement &placement, Nest nest, const std::vector<int> &products,
                            const std::vector<tile::Buffer> &partials, const std::string &columns, Storage &storage);

}  // namespace tilewright
