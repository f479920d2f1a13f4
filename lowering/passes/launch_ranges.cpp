#include "lowering/passes/launch_ranges.h"

#include <algorithm>
#include <numeric>

namespace tilewright {

VariableRanges launch_ranges(const tile::Launch &launch, const SymbolRanges &symbols) {
    VariableRanges ranges;
    const auto below = [&](const Extent &extent) { return SymbolRange{0, std::max<std::int64_t>(extent.bounds(symbols).max - 1, 0)}; };
    for (const auto &[name, range] : symbols) {
        ranges[name] = range;
    }
    ranges["thread.rank"] = {0, launch.threads - 1};
    for (const tile::Axis &axis : launch.axes) {
        ranges[axis.name] = ranges[axis.name + ".first"] = below(axis.extent);
        for (const tile::Leaf &leaf : axis.leaves) {
            ranges[leaf.name] = below(leaf.extent);
        }
    }
    return ranges;
}

std::int64_t multiple_of_axis(const tile::Axis &axis, const std::string &left_out) {
    std::int64_t multiple = 0;
    for (const tile::Leaf &leaf : axis.leaves) {
        if (leaf.name != left_out) {
            multiple = std::gcd(multiple, leaf.stride.is_constant() ? leaf.stride.value() : 1);
        }
    }
    return multiple;
}

std::map<std::string, std::int64_t> launch_multiples(const tile::Launch &launch) {
    std::map<std::string, std::int64_t> multiples;
    for (const tile::Axis &axis : launch.axes) {
        multiples[axis.name] = axis.shift.defined() ? 1 : std::max<std::int64_t>(multiple_of_axis(axis), 1);
    }
    return multiples;
}

const tile::Axis *axis_stepped_by(const tile::Launch &launch, const tile::For &loop) {
    for (const tile::Axis &axis : launch.axes) {
        if (!axis.leaves.empty() && axis.leaves.back().name == loop.variable && axis.leaves.back().stride == Extent(1)) {
            return &axis;
        }
    }
    return nullptr;
}

}  // namespace tilewright
