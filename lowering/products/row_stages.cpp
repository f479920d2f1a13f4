#include "lowering/products/row_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "dsl/algorithm/combiner.h"
#include "lowering/nests/invoke.h"
#include "lowering/nests/nest_work.h"
#include "lowering/nests/split_reduction.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {

constexpr int lanes_of_row = 4;
constexpr int warps = 4;  // of a warpgroup

int rows_of(const FragmentShape &shape) { return shape.warpgroups * shape.chunks * 64; }

/// Values of one type take turns in one array.
tile::Buffer exchange_of(const tile::Buffer &value, const FragmentShape &shape) {
    const Halide::Type &type = value.types[0];
    const std::string kind = type.is_bfloat() ? "bfloat" : type.is_float() ? "float" : type.is_uint() ? "uint" : "int";
    const std::string name = value.combiner.empty() ? fmt::format("row_exchange_{}{}", kind, type.bits()) : value.name + "_exchange";
    tile::Buffer exchange = tile::dense_buffer(name, value.types, tile::Memory::shared, {2 * rows_of(shape)});
    exchange.combiner = value.combiner;
    exchange.ordered = true;
    return exchange;
}

}  // namespace

void RowStages::keep(const std::vector<int> &products, const FragmentShape &shape, const Refusal &refuse) {
    const auto is_product = [&](const Member &m) { return std::find(products.begin(), products.end(), m.stage) != products.end(); };
    const auto reduces = [&](const Member &m) {
        return !is_product(m) && kernel_.algorithm.stages[m.stage].func.function().has_update_definition();
    };
    if (std::none_of(nest_.members.begin(), nest_.members.end(), reduces)) {
        return;
    }
    for (const Member &member : nest_.members) {
        if (!is_product(member) && (member.stage != nest_.anchor || reduces(member))) {
            keep_one(member, shape, refuse);
        }
    }
}

void RowStages::keep_one(const Member &member, const FragmentShape &shape, const Refusal &refuse) {
    const tilewright::Stage &stage = kernel_.algorithm.stages[member.stage];
    Stage kept;
    kept.stage = member.stage;
    kept.spread = member.axes.count(shape.columns) ? Spread::elements : Spread::rows;
    std::vector<Expr> definitions = stage.func.function().definition().values();
    if (stage.func.function().has_update_definition()) {
        const auto fold = match_fold(stage.func);
        if (!fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last ||
            member.reduction_axes != std::set<std::string>{shape.columns}) {
            refuse(fmt::format("stage '{}' reduces beside it, not along its rows", stage.name()), "compute that stage at the root");
        }
        kept.spread = Spread::reduced;
        kept.combiner = combiner_definition(identifier(stage.name()) + "_combine", fold->combiner, stage.func.types());
        if (!is_identity(fold->initial, kept.combiner.identity)) {
            refuse(fmt::format("stage '{}' begins with more than nothing", stage.name()), "compute that stage at the root");
        }
        definitions = fold->terms;
    }
    for (const Expr &e : definitions) {
        kept.values.push_back(values_.evaluate(e, member.environment, member.stage));
    }
    kept.buffer = registers(kept, shape);
    values_.keep(member.stage, kept.buffer, kept.spread == Spread::elements ? element_place() : row_place());
    stages_.push_back(std::move(kept));
}

tile::Buffer RowStages::registers(const Stage &kept, const FragmentShape &shape) const {
    const tilewright::Stage &stage = kernel_.algorithm.stages[kept.stage];
    std::vector<Extent> extents{shape.chunks, 2};
    if (kept.spread == Spread::elements) {
        const bool chosen = shape.strip > 0;
        extents = {shape.chunks, chosen ? shape.strips() : 1, chosen ? shape.blocks() : 1, 2, shape.lanes};
    }
    tile::Buffer buffer = tile::dense_buffer(identifier(stage.name()) + (kept.spread == Spread::elements ? "_kept" : "_of_row"),
                                             stage.func.types(), tile::Memory::registers, extents);
    buffer.combiner = buffer.types.size() > 1 ? kept.combiner.name : "";
    return buffer;
}

std::vector<Expr> RowStages::row_place() { return {tile::variable("m_chunk"), tile::variable("m_half")}; }
std::vector<Expr> RowStages::element_place() {
    return {tile::variable("m_chunk"), tile::variable("n_strip"), tile::variable("n_block"), tile::variable("m_half"),
            tile::variable("n_lane")};
}

Expr RowStages::kept(int stage, int element) const {
    const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const Stage &s) { return s.stage == stage; });
    if (found == stages_.end()) {
        return {};
    }
    return tile::read(found->buffer, found->spread == Spread::elements ? element_place() : row_place(), element);
}

std::vector<Expr> RowStages::element_values() const {
    std::vector<Expr> values;
    for (const Stage &stage : stages_) {
        if (stage.spread != Spread::rows) {
            values.insert(values.end(), stage.values.begin(), stage.values.end());
        }
    }
    return values;
}

int RowStages::reductions() const {
    return static_cast<int>(std::count_if(stages_.begin(), stages_.end(), [](const Stage &s) { return s.spread == Spread::reduced; }));
}

std::int64_t RowStages::exchange_bytes(const FragmentShape &shape, int blocks) const {
    std::map<std::string, std::int64_t> bytes;
    for (const Stage &stage : stages_) {
        if (stage.spread == Spread::reduced) {
            const tile::Buffer exchange = exchange_of(stage.buffer, shape);
            const auto wider = [](std::int64_t sum, const Halide::Type &type) { return sum + std::max(type.bytes(), 4); };
            bytes[exchange.name] =
                2 * rows_of(shape) * std::accumulate(exchange.types.begin(), exchange.types.end(), std::int64_t{0}, wider);
        }
    }
    const auto add = [](std::int64_t sum, const auto &entry) { return sum + entry.second; };
    return blocks > 1 ? std::accumulate(bytes.begin(), bytes.end(), std::int64_t{8 * warps * shape.warpgroups}, add) : 0;
}

void RowStages::declare(const FragmentShape &shape, int blocks) {
    for (Stage &stage : stages_) {
        stage.buffer = registers(stage, shape);
        launch_.buffers.push_back(stage.buffer);
        if (stage.spread != Spread::reduced) {
            continue;
        }
        launch_.combiners.push_back(stage.combiner);
        if (blocks > 1) {
            values_.use(exchange_of(stage.buffer, shape));
        }
    }
    if (blocks > 1 && !stages_.empty()) {
        tile::Buffer barriers = tile::dense_buffer("row_barriers", {Halide::UInt(64)}, tile::Memory::shared, {warps * shape.warpgroups});
        barriers.ordered = true;
        launch_.buffers.push_back(barriers);
    }
}

tile::Block RowStages::begin(const FragmentShape &shape, int blocks) const {
    if (stages_.empty() || blocks == 1) {
        return {};
    }
    return {invoke("row_barriers_begin", {std::to_string(blocks)}, {buffer("row_barriers"), scalar(Expr(warps * shape.warpgroups))})};
}
tile::Block RowStages::finish(int blocks) const {
    return stages_.empty() || blocks == 1 ? tile::Block() : tile::Block{tile::Statement{tile::Barrier{tile::Barrier::Scope::cluster}}};
}

tile::Block RowStages::guarded(tile::Block body, const FragmentShape &shape) const {
    for (const std::string &name : {shape.columns, shape.rows}) {
        const tile::Axis &a = *nest_.find_axis(name);
        if (!a.exact()) {
            body = {tile::Statement{tile::If{tile::variable(name) < to_halide(a.extent), std::move(body)}}};
        }
    }
    return body;
}
tile::Block RowStages::over_rows(tile::Block body, const FragmentShape &shape) const {
    body = {tile::Statement{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
    return {tile::Statement{tile::For{"m_chunk", shape.chunks, Level::unroll, std::move(body)}}};
}
tile::Block RowStages::over_elements(tile::Block body, Level lanes, const FragmentShape &shape) const {
    body = {tile::Statement{tile::For{"n_lane", shape.lanes, lanes, guarded(std::move(body), shape)}}};
    body = {tile::Statement{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
    body = {tile::Statement{tile::For{"n_block", shape.blocks(), Level::unroll, std::move(body)}}};
    body = {tile::Statement{tile::For{"n_strip", shape.strips(), Level::unroll, std::move(body)}}};
    return {tile::Statement{tile::For{"m_chunk", shape.chunks, Level::unroll, std::move(body)}}};
}

/// Within the block.
tile::Block RowStages::reduce(const Stage &stage, const FragmentShape &shape) const {
    const std::string &name = stage.buffer.name, &combiner = stage.combiner.name;
    tile::Block body = over_rows({tile::Statement{tile::Store{name, row_place(), stage.combiner.identity}}}, shape);
    const tile::Block folds = over_elements({tile::Statement{tile::Fold{name, combiner, row_place(), stage.values}}}, Level::unroll, shape);
    const tile::Block combine = over_rows({tile::Statement{tile::Combine{name, combiner, row_place(), {{lanes_of_row, 1}}, "", 1}}}, shape);
    body.insert(body.end(), folds.begin(), folds.end());
    body.insert(body.end(), combine.begin(), combine.end());
    return body;
}

tile::Block RowStages::statements(const FragmentShape &shape, int blocks, const Expr &round) const {
    tile::Block body;
    int phase = 0;
    const auto append = [&](const tile::Block &more) { body.insert(body.end(), more.begin(), more.end()); };
    for (const Stage &stage : stages_) {
        const std::string &name = stage.buffer.name;
        if (stage.spread == Spread::reduced) {
            append(reduce(stage, shape));
            if (blocks > 1) {
                body.push_back(invoke("combine_rows", {std::to_string(blocks), std::to_string(rows_of(shape)), stage.combiner.name},
                                      {buffer(name), buffer(exchange_of(stage.buffer, shape).name), buffer("row_barriers"),
                                       scalar(round * reductions() + phase++)},
                                      {name}));
            }
        } else if (stage.spread == Spread::rows) {
            append(over_rows({tile::Statement{tile::Store{name, row_place(), stage.values}}}, shape));
        } else {
            append(over_elements({tile::Statement{tile::Store{name, element_place(), stage.values}}}, Level::vector, shape));
        }
    }
    return body;
}

}  // namespace tilewright
