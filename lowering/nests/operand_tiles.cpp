#include "lowering/nests/operand_tiles.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

const ScheduledStage *copy_of(NestWork &work, const Stage &s, const std::string &buffer) {
    for (const ScheduledStage &copy : work.schedule.stages) {
        const bool is_input = copy.copy_for == s.name() && copy.is_edited && work.kernel.algorithm.find_input(copy.copy_of);
        if (is_input && work.storage.input(copy.copy_of).name == buffer) {
            return &copy;
        }
    }
    return nullptr;
}

/// How the leaves of an operand's two axes make its tiles: its rows lie over threads and their registers, its terms in an innermost
/// unrolled loop.
struct TileShape {
    const tile::Axis *rows = nullptr, *terms = nullptr;
    const tile::Leaf *term = nullptr;    ///< the terms of a tile
    const tile::Leaf *lane = nullptr;    ///< a thread's neighbouring rows
    const tile::Leaf *group = nullptr;   ///< its groups of these, where it has several
    std::int64_t height = 1;             ///< rows of a tile
    Expr first_row = 0, first_term = 0;  ///< of a tile, in the operand
    Expr own_row = 0;                    ///< of a thread's lanes, in the tile

    std::int64_t depth() const { return term->extent.value(); }
    std::int64_t lanes() const { return lane->extent.value(); }
};

bool has_level(const tile::Axis &axis, Level level) {
    return std::any_of(axis.leaves.begin(), axis.leaves.end(), [&](const tile::Leaf &l) { return l.level == level; });
}

/// The axis that runs over threads and the one that does not; false where that leaves others that a block has several places of.
bool find_axes(const NestWork &work, const std::set<std::string> &axes, TileShape &shape) {
    for (const std::string &name : axes) {
        const tile::Axis *axis = work.nest.find_axis(name);
        const bool spread =
            std::any_of(axis->leaves.begin(), axis->leaves.end(), [](const tile::Leaf &l) { return l.level != Level::grid; });
        const tile::Axis *&role = has_level(*axis, Level::thread) ? shape.rows : shape.terms;
        if (spread && role) {
            return false;
        }
        role = spread ? axis : role;
    }
    return shape.rows && shape.terms;
}

bool add_rows(TileShape &shape) {
    shape.lane = &shape.rows->leaves.back();
    for (const tile::Leaf &leaf : shape.rows->leaves) {
        const Expr part = tile::variable(leaf.name) * to_halide(leaf.stride);
        if (leaf.level == Level::grid) {
            shape.first_row = shape.first_row + part;
            continue;
        }
        shape.height *= leaf.extent.value();
        if (&leaf == shape.lane) {
            continue;
        }
        shape.own_row = shape.own_row + part;
        if (leaf.level != Level::thread) {
            if (shape.group || leaf.level != Level::unroll) {
                return false;
            }
            shape.group = &leaf;
        }
    }
    return shape.lane->level == Level::unroll || shape.lane->level == Level::vector;
}

bool add_terms(TileShape &shape) {
    shape.term = &shape.terms->leaves.back();
    for (const tile::Leaf &leaf : shape.terms->leaves) {
        if (&leaf != shape.term) {
            if (leaf.level != Level::loop && leaf.level != Level::grid) {
                return false;
            }
            shape.first_term = shape.first_term + tile::variable(leaf.name) * to_halide(leaf.stride);
        }
    }
    return shape.term->level == Level::unroll && shape.term->stride == Extent(1);
}

/// Empty where no tile can be made: lanes must be one access, and every thread must copy as many elements.
std::optional<TileShape> tile_shape(const NestWork &work, const std::set<std::string> &axes, const Halide::Type &type) {
    TileShape shape;
    if (!find_axes(work, axes, shape) || !add_terms(shape) || !add_rows(shape)) {
        return std::nullopt;
    }
    const std::int64_t lanes = shape.lanes();
    const bool one_access = lanes * type.bytes() <= 16 && (lanes & (lanes - 1)) == 0;
    const bool guarded_apart = std::any_of(work.nest.guards.begin(), work.nest.guards.end(), [&](const auto &g) {
        return g.first.count(shape.rows->name) || g.first.count(shape.terms->name);
    });
    const bool fits = one_access && shape.height * shape.depth() % work.nest.threads == 0 && !guarded_apart;
    return fits ? std::optional(shape) : std::nullopt;
}

/// The value at a place of its tile; zero outside of the operand.
Expr value_at(const TileShape &shape, const Expr &value, const Expr &row, const Expr &term) {
    const Expr row_place = shape.first_row + row, term_place = shape.first_term + term;
    const Expr copied = substitute_variables(value, {{shape.rows->name, row_place}, {shape.terms->name, term_place}});
    Expr inside;
    for (const auto &[axis, index] : {std::pair(shape.rows, row_place), std::pair(shape.terms, term_place)}) {
        if (!axis->exact()) {
            const Expr condition = index < to_halide(axis->extent);
            inside = inside.defined() ? inside && condition : condition;
        }
    }
    return inside.defined() ? hi::Select::make(inside, copied, hi::make_zero(value.type())) : copied;
}

/// Whether the tile that is added next is the stage's last: one barrier serves all of them, before the loops that read them.
bool is_last_tile(const NestWork &work, const Stage &s) {
    const auto copies = std::count_if(work.schedule.stages.begin(), work.schedule.stages.end(),
                                      [&](const ScheduledStage &c) { return c.copy_for == s.name() && c.is_edited; });
    return static_cast<std::ptrdiff_t>(work.staged.size()) + 1 == copies;
}

/// The piece that copies a tile into shared memory.
Piece filling(NestWork &work, const Stage &s, const TileShape &shape, const hi::Call *read, const Expr &value) {
    tile::Buffer shared;
    shared.name = work.unique(s.name() + "_tile");
    shared.types = {value.type()};
    shared.memory = tile::Memory::shared;
    shared.extents = {shape.depth(), shape.height};
    shared.strides = {shape.height + 16 / value.type().bytes(), 1};  // rows of terms begin in different banks
    shared.alignment = 16;
    work.launch.buffers.push_back(shared);
    // Neighbouring threads read neighbours in memory.
    const tile::Buffer &source = *work.launch.find_buffer(read->name);
    bool along_terms = false;
    for (std::size_t i = 0; i < read->args.size(); ++i) {
        along_terms = along_terms || (source.strides[i] == Extent(1) && mentions(read->args[i], shape.terms->name));
    }
    const std::string piece_name = shared.name + "_piece", row_name = shared.name + "_row", term_name = shared.name + "_term";
    const Expr place = tile::variable(piece_name) * work.nest.threads + tile::variable("thread.rank");
    const int fast = static_cast<int>(along_terms ? shape.depth() : shape.height);
    const Expr row = tile::variable(row_name), term = tile::variable(term_name);
    Piece fill;
    fill.name = shared.name;
    fill.loops = work.leaves_at({shape.terms->name}, {Level::loop});
    fill.body = [=, copied = value_at(shape, value, row, term), pieces = shape.height * shape.depth() / work.nest.threads,
                 is_last = is_last_tile(work, s)] {
        tile::Block body{tile::Statement{tile::Let{row_name, along_terms ? place / fast : place % fast}},
                         tile::Statement{tile::Let{term_name, along_terms ? place % fast : place / fast}},
                         tile::Statement{tile::Store{shared.name, {term, row}, {copied}}}};
        tile::For loop{piece_name, pieces, Level::unroll, std::move(body)};
        loop.disjoint = true;
        tile::Block block{tile::Statement{std::move(loop)}};
        if (is_last) {
            block.push_back({tile::Barrier{}});
        }
        return block;
    };
    return fill;
}

/// The piece that loads a thread's rows of one term from the tile into registers, after piece `filled`.
Piece loading(const TileShape &shape, const Piece &fill, int filled, const std::string &registers, const Expr &vector) {
    Piece load;
    load.name = registers;
    load.loops = fill.loops;
    load.loops.insert(shape.term->name);
    load.needs = {filled};
    const tile::VectorLoad statement{
        registers, fill.name, {tile::variable(shape.term->name), shape.own_row}, static_cast<int>(shape.lanes()), {vector}, {}};
    load.body = [statement, group = shape.group] {
        tile::Block body{tile::Statement{statement}};
        return group ? tile::Block{tile::Statement{tile::For{group->name, group->extent, Level::unroll, std::move(body)}}} : body;
    };
    return load;
}

}  // namespace

std::optional<Expr> staged_operand(NestWork &work, const Stage &s, const std::set<std::string> &axes, const Expr &value) {
    const hi::Call *read = nullptr;
    int reads = 0;
    visit_reads(value, [&](const hi::Call *call) {
        read = call;
        ++reads;
    });
    const ScheduledStage *copy = reads == 1 ? copy_of(work, s, read->name) : nullptr;
    if (!copy) {
        return std::nullopt;
    }
    for (const auto &[known, kept] : work.operands) {
        if (hi::graph_equal(known, value)) {
            return kept;
        }
    }
    const std::optional<TileShape> shape = tile_shape(work, axes, value.type());
    if (!shape) {
        return std::nullopt;
    }
    const Piece fill = filling(work, s, *shape, read, value);
    const int filled = work.add_piece(fill);
    const tile::Buffer registers = tile::dense_buffer(work.unique(s.name() + "_operand") + ".vec", {value.type()}, tile::Memory::registers,
                                                      {shape->group ? shape->group->extent : Extent(1), shape->lanes()});
    work.launch.buffers.push_back(registers);
    const Expr vector = shape->group ? tile::variable(shape->group->name) : Expr(0);
    work.piece_of[registers.name] = work.add_piece(loading(*shape, fill, filled, registers.name, vector));
    work.staged.insert(copy->name);
    work.operands.emplace_back(value, tile::read(registers, {vector, tile::variable(shape->lane->name)}));
    return work.operands.back().second;
}

}  // namespace tilewright
