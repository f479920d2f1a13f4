// Where tensors and stages lie in global memory: inputs, outputs, and scratch for what one launch leaves to another.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/nests/nest.h"

namespace tilewright {

/// A C identifier that is no word of C++ or of the device header.
std::string identifier(const std::string &name);

class Storage {
public:
    Storage(const Algorithm &algorithm, const Placement &placement);

    /// Buffer of an input tensor; its name is the input's identifier.
    const tile::Buffer &input(const std::string &name) const;
    /// Where other launches read this element of a stage.
    const tile::Buffer &of(int stage, int tuple_index) const;
    /// Every place that the element must be stored to: outputs, and scratch where another launch reads it and no output holds it.
    std::vector<tile::Buffer> targets(int stage, int tuple_index) const;
    /// Scratch of its own.
    tile::Buffer scratch(const std::string &name, Halide::Type type, const std::vector<Extent> &extents, bool zeroed = false);

private:
    std::map<std::string, tile::Buffer> inputs_;
    std::map<std::pair<int, int>, std::vector<tile::Buffer>> stored_;
    int next_slot_ = 0;
};

}  // namespace tilewright
