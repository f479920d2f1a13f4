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
    const tile::Axis *rows = nullptr, *terms = nullptr;
    for (const std::string &name : axes) {
        const tile::Axis *axis = work.nest.find_axis(name);
        const bool spread = std::any_of(axis->leaves.begin(), axis->leaves.end(), [](const tile::Leaf &l) { return l.level != Level::grid; });
        const bool has_threads = std::any_of(axis->leaves.begin(), axis->leaves.end(), [](const tile::Leaf &l) { return l.level == Level::thread; });
        const tile::Axis *&role = has_threads ? rows : terms;
        if (spread && role) {
            return std::nullopt;
        }
        role = spread ? axis : role;
    }
    if (!rows || !terms || terms->leaves.back().level != Level::unroll || !(terms->leaves.back().stride == Extent(1))) {
        return std::nullopt;
    }
    const tile::Leaf &term = terms->leaves.back(), &lane = rows->leaves.back();
    const tile::Leaf *group = nullptr;
    std::int64_t tile = 1;
    Expr row_base = 0, term_base = 0, own = 0;
    for (const tile::Leaf &leaf : rows->leaves) {
        const Expr part = tile::variable(leaf.name) * to_halide(leaf.stride);
        if (leaf.level == Level::grid) {
            row_base = row_base + part;
            continue;
        }
        tile *= leaf.extent.value();
        own = &leaf == &lane ? own : own + part;
        if (leaf.level != Level::thread && &leaf != &lane) {
            if (group || leaf.level != Level::unroll) {
                return std::nullopt;
            }
            group = &leaf;
        }
    }
    for (const tile::Leaf &leaf : terms->leaves) {
        if (&leaf != &term) {
            if (leaf.level != Level::loop && leaf.level != Level::grid) {
                return std::nullopt;
            }
            term_base = term_base + tile::variable(leaf.name) * to_halide(leaf.stride);
        }
    }
    const std::int64_t depth = term.extent.value(), lanes = lane.extent.value();
    const bool in_registers = lane.level == Level::unroll || lane.level == Level::vector;
    const bool guarded_apart = std::any_of(work.nest.guards.begin(), work.nest.guards.end(), [&](const auto &g) { return g.first.count(rows->name) || g.first.count(terms->name); });
    if (!in_registers || lanes * value.type().bytes() > 16 || (lanes & (lanes - 1)) != 0 || tile * depth % work.nest.threads != 0 || guarded_apart) {
        return std::nullopt;
    }
    tile::Buffer shared;
    shared.name = work.unique(s.name() + "_tile");
    shared.types = {value.type()};
    shared.memory = tile::Memory::shared;
    shared.extents = {depth, tile};
    shared.strides = {tile + 16 / value.type().bytes(), 1};  // rows of terms begin in different banks
    shared.alignment = 16;
    work.launch.buffers.push_back(shared);
    // Neighbouring threads read neighbours in memory.
    const tile::Buffer &source = *work.launch.find_buffer(read->name);
    bool along_terms = false;
    for (std::size_t i = 0; i < read->args.size(); ++i) {
        along_terms = along_terms || (source.strides[i] == Extent(1) && mentions(read->args[i], terms->name));
    }
    const std::string piece_name = shared.name + "_piece", row_name = shared.name + "_row", term_name = shared.name + "_term";
    const Expr place = tile::variable(piece_name) * work.nest.threads + tile::variable("thread.rank");
    const int fast = static_cast<int>(along_terms ? depth : tile);
    const Expr row = tile::variable(row_name), at_term = tile::variable(term_name);
    const Expr row_place = row_base + row, term_place = term_base + at_term;
    Expr copied = substitute_variables(value, {{rows->name, row_place}, {terms->name, term_place}});
    Expr inside;
    for (const auto &[axis, index] : {std::pair(rows, row_place), std::pair(terms, term_place)}) {
        if (!axis->exact()) {
            const Expr condition = index < to_halide(axis->extent);
            inside = inside.defined() ? inside && condition : condition;
        }
    }
    copied = inside.defined() ? hi::Select::make(inside, copied, hi::make_zero(value.type())) : copied;
    const auto copies = std::count_if(work.schedule.stages.begin(), work.schedule.stages.end(), [&](const ScheduledStage &c) { return c.copy_for == s.name() && c.is_edited; });
    const bool is_last = static_cast<std::ptrdiff_t>(work.staged.size()) + 1 == copies;
    Piece fill;
    fill.name = shared.name;
    fill.loops = work.leaves_at({terms->name}, {Level::loop});
    fill.body = [=, pieces = tile * depth / work.nest.threads] {
        tile::Block body{tile::Statement{tile::Let{row_name, along_terms ? place / fast : place % fast}},
                         tile::Statement{tile::Let{term_name, along_terms ? place % fast : place / fast}},
                         tile::Statement{tile::Store{shared.name, {at_term, row}, {copied}}}};
        tile::For loop{piece_name, pieces, Level::unroll, std::move(body)};
        loop.disjoint = true;
        tile::Block block{tile::Statement{std::move(loop)}};
        if (is_last) {  // one barrier for all tiles, before the loops that read them
            block.push_back({tile::Barrier{}});
        }
        return block;
    };
    const int filled = work.add_piece(fill);
    const tile::Buffer registers = tile::dense_buffer(work.unique(s.name() + "_operand") + ".vec", {value.type()}, tile::Memory::registers,
                                                      {group ? group->extent : Extent(1), lanes});
    work.launch.buffers.push_back(registers);
    const Expr vector = group ? tile::variable(group->name) : Expr(0);
    Piece load;
    load.name = registers.name;
    load.loops = fill.loops;
    load.loops.insert(term.name);
    load.needs = {filled};
    load.body = [=, term_name = term.name] {
        tile::VectorLoad statement{registers.name, shared.name, {tile::variable(term_name), own}, static_cast<int>(lanes), {vector}, {}};
        tile::Block body{tile::Statement{statement}};
        return group ? tile::Block{tile::Statement{tile::For{group->name, group->extent, Level::unroll, std::move(body)}}} : body;
    };
    work.piece_of[registers.name] = work.add_piece(load);
    work.staged.insert(copy->name);
    work.operands.emplace_back(value, tile::read(registers, {vector, tile::variable(lane.name)}));
    return work.operands.back().second;
}

}  // namespace tilewright
