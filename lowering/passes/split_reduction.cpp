#include "lowering/passes/split_reduction.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/passes/special_forms.h"

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

/// The launch that combines the parts. Threads: 32 neighbouring elements by 8 shares of the parts.
tile::Launch finish_launch(NestWork &work, const Stage &s, int index, const Fold &fold, const tile::CombinerDefinition &definition,
                           const std::vector<tile::Buffer> &partials, const std::vector<Extent> &extents, std::size_t parts) {
    tile::Launch launch;
    launch.name = identifier(work.kernel.name + "_" + s.name() + "_finish");
    const Extent elements = product(s.extents);
    Extent part_count = 1;
    for (std::size_t i = 0; i < parts; ++i) {
        part_count = part_count * extents[i];
    }
    constexpr int columns = 32, shares = 8;
    tile::Axis element{"element", elements, {{"element_block", ceil_div(elements, columns), Level::grid, columns, 1},
                                             {"element_lane", columns, Level::thread, 1, 1}}};
    tile::Axis part{"part", part_count, {{"part_step", ceil_div(part_count, shares), Level::loop, shares, 1},
                                         {"part_share", shares, Level::thread, 1, columns}}};
    launch.axes = {element, part};
    launch.blocks = ceil_div(elements, columns);
    launch.threads = columns * shares;
    launch.combiners = {definition};
    tile::Buffer total;
    total.name = identifier(s.name()) + "_total";
    total.types = s.func.types();
    total.memory = tile::Memory::registers;
    total.combiner = total.types.size() > 1 ? definition.name : "";
    tile::Buffer exchange = total;
    exchange.name += "_exchange";
    exchange.memory = tile::Memory::shared;
    exchange.extents = {columns * shares};
    exchange.strides = {1};
    launch.buffers = {total, exchange};
    std::vector<Expr> terms;
    for (tile::Buffer flat : partials) {
        flat.extents = {part_count, elements};
        flat.strides = {elements, 1};
        launch.buffers.push_back(flat);
        terms.push_back(tile::read(flat, {tile::variable("part"), tile::variable("element")}));
    }
    std::vector<Expr> guards;
    if (!element.exact()) {
        guards.push_back(tile::variable("element") < to_halide(elements));
    }
    const std::vector<Expr> store_guards = guards;
    if (!part.exact()) {
        guards.push_back(tile::variable("part") < to_halide(part_count));
    }
    launch.body.push_back({tile::Store{total.name, {}, definition.identity}});
    tile::For loop{"part_step", part.leaves[0].extent, Level::loop, guarded(guards, {tile::Statement{tile::Fold{total.name, definition.name, {}, terms}}})};
    launch.body.push_back({loop});
    launch.body.push_back({tile::Combine{total.name, definition.name, {}, {{shares, columns}}, exchange.name, 1}});
    std::vector<Expr> places = unflatten(s.extents, tile::variable("element"));
    tile::Block stores;
    if (!is_identity(fold.initial, definition.identity)) {
        Substitution environment;
        for (std::size_t i = 0; i < places.size(); ++i) {
            environment[s.func.function().args()[i]] = places[i];
        }
        std::vector<Expr> initial;
        for (const Expr &e : fold.initial) {
            if (contains_read(e)) {
                user_error("kernel {}: the initial value of '{}' is read from a tensor, so its reduction cannot be split over blocks", work.kernel.name, s.name());
            }
            initial.push_back(substitute_variables(e, environment));
        }
        stores.push_back({tile::Fold{total.name, definition.name, {}, initial}});
    }
    for (std::size_t i = 0; i < total.types.size(); ++i) {
        for (const tile::Buffer &target : work.storage.targets(index, static_cast<int>(i))) {
            if (!launch.find_buffer(target.name)) {
                launch.buffers.push_back(target);
            }
            stores.push_back({tile::Store{target.name, places, {tile::read(total, {}, static_cast<int>(i))}}});
        }
    }
    std::vector<Expr> writer = store_guards;
    writer.push_back(tile::variable("part_share") == 0);
    tile::Block last = guarded(writer, stores);
    launch.body.insert(launch.body.end(), last.begin(), last.end());
    return launch;
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

void add_split(NestWork &work, const Member &member, const Fold &fold, const tile::CombinerDefinition &definition, const std::vector<Expr> &values) {
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
    work.finishing.push_back(finish_launch(work, s, member.stage, fold, definition, partials, extents, parts));
}

}  // namespace tilewright
