#include "lowering/tile_ir/tile_ir.h"

#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "lowering/tile_ir/inward_tail.h"

namespace tilewright::tile {

std::string_view name(Level level) {
    switch (level) {
        case Level::grid:
            return "grid";
        case Level::cluster:
            return "cluster";
        case Level::loop:
            return "loop";
        case Level::unroll:
            return "unroll";
        case Level::thread:
            return "thread";
        case Level::vector:
            return "vector";
    }
    return "?";
}

bool Axis::exact() const {
    Extent covered = 1;
    for (const Leaf &leaf : leaves) {
        covered = covered * leaf.extent;
    }
    return moves_inwards(*this) || (covered == extent && !shift.defined());
}

const Buffer *Launch::find_buffer(std::string_view key) const {
    auto found = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer &b) { return b.name == key; });
    return found == buffers.end() ? nullptr : &*found;
}

Buffer *Launch::find_buffer(std::string_view key) { return const_cast<Buffer *>(static_cast<const Launch *>(this)->find_buffer(key)); }

const CombinerDefinition *Launch::find_combiner(std::string_view key) const {
    auto found = std::find_if(combiners.begin(), combiners.end(), [&](const CombinerDefinition &c) { return c.name == key; });
    return found == combiners.end() ? nullptr : &*found;
}

Expr read(const Buffer &buffer, const std::vector<Expr> &indices, int tuple_index) {
    return Halide::Internal::Call::make(buffer.types.at(tuple_index), buffer.name, indices, Halide::Internal::Call::Halide, {},
                                        tuple_index);
}

Expr variable(const std::string &name) { return Halide::Internal::Variable::make(Halide::Int(32), name); }

Expr sum_of_leaves(const Axis &axis, bool first) {
    Expr sum = 0;
    for (const Leaf &leaf : axis.leaves) {
        if (!(leaf.extent == Extent(1)) && !(first && leaf.level == Level::vector)) {
            sum = sum + variable(leaf.name) * to_halide(leaf.stride);
        }
    }
    return axis.shift.defined() ? sum - axis.shift : sum;
}

}  // namespace tilewright::tile
