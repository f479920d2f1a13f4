#include "lowering/nests/split_reduction.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

/// After the threads have combined, one of them stores.
void add_thread_zero(NestWork &work, const Member &member, std::vector<Expr> &guards) {
    for (const tile::Axis &axis : work.nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (member.reduction_axes.count(axis.name) && leaf.level == Level::thread) {
                guards.push_back(tile::variable(leaf.name) == 0);
            }
        }
    }
}

}  // namespace

bool is_identity(const std::vector<Expr> &initial, const std::vector<Expr> &identity) {
    for (std::size_t i = 0; i < initial.size(); ++i) {
        if (!hi::graph_equal(initial[i], identity[i])) {
            return false;
        }
    }
    return true;
}

void add_split(NestWork &work, const Member &member, const Fold &fold, const tile::CombinerDefinition &definition,
               const std::vector<Expr> &values) {
    const Stage &s = work.stage(member.stage);
    std::vector<Expr> part;
    std::vector<Extent> extents;
    for (const tile::Axis &axis : work.nest.axes) {
        for (const tile::Leaf &leaf : axis.leaves) {
            if (member.reduction_axes.count(axis.name) && leaf.level == Level::grid) {
                part.push_back(tile::variable(leaf.name));
                extents.push_back(leaf.extent);
            }
        }
    }
    const std::size_t parts = extents.size();
    extents.insert(extents.end(), s.extents.begin(), s.extents.end());
    std::vector<Expr> place = part;
    place.insert(place.end(), member.places.begin(), member.places.end());
    std::vector<Expr> guards = work.guards_of(member.axes);
    work.add_single_writer(joined(member.axes, member.reduction_axes), guards);
    add_thread_zero(work, member, guards);
    std::vector<tile::Buffer> partials;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string name = identifier(s.name()) + "_partial" + (values.size() > 1 ? std::to_string(i) : "");
        partials.push_back(work.storage.scratch(name, values[i].type(), extents));
        work.launch.buffers.push_back(partials.back());
        Piece piece;
        piece.name = s.name() + " partial";
        piece.loops = work.loops_of(member.axes);
        piece.needs = work.needs_of({values[i]});
        const tile::Store store{partials.back().name, place, {values[i]}};
        piece.body = [=] { return guarded(guards, {tile::Statement{store}}); };
        work.add_piece(piece);
    }
    Extent part_count = 1;
    for (std::size_t i = 0; i < parts; ++i) {
        part_count = part_count * extents[i];
    }
    work.split_sums.push_back({member.stage, fold, definition, partials, part_count});
}

}  // namespace tilewright
