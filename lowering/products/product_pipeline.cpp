#include "lowering/products/product_pipeline.h"

#include <algorithm>

#include "lowering/nests/invoke.h"
#include "lowering/products/computed_operand.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

tile::Block ProductPipeline::over_tiles(tile::Block body) const {
    const Expr rank = tile::variable("block.rank");
    // Neighbours fetch the same tiles, which the way from the L2 cache merges: they share terms only where a cluster adds them up.
    const bool in_turn = plan_.leaves_partials();
    const Expr share = in_turn ? rank % to_halide(plan_.tiles) : plan_.parts > 1 ? rank / plan_.parts : rank;
    const Expr number = plan_.persistent ? tile::variable("round") * to_halide(blocks_) + rank : share;
    const Expr tile = tile::variable("tile");
    tile::Block inside;
    const auto let = [&](const std::string &name, const Expr &value) { inside.push_back({tile::Let{name, value}}); };
    const Expr plane = to_halide(plan_.m_tiles * plan_.n_tiles);
    Expr batch = tile / plane;
    for (auto name = plan_.shape.batch.rbegin(); name != plan_.shape.batch.rend(); ++name) {
        const Expr extent = to_halide(nest_.find_axis(*name)->extent);
        let(*name + "_batch", batch % extent);
        batch = batch / extent;
    }
    // Stripes of raster_ rows of tiles, column by column: neighbours in time share what the L2 cache holds.
    const Expr stripe_tiles = to_halide(plan_.n_tiles) * plan_.raster;
    let("in_plane", tile % plane);
    const Expr in_plane = tile::variable("in_plane");
    let("stripe", in_plane / stripe_tiles * plan_.raster);
    let("stripe_rows", Halide::min(to_halide(plan_.m_tiles) - tile::variable("stripe"), plan_.raster));
    let("in_stripe", in_plane % stripe_tiles);
    let("m_tile", tile::variable("stripe") + tile::variable("in_stripe") % tile::variable("stripe_rows"));
    let("n_tile", tile::variable("in_stripe") / tile::variable("stripe_rows"));
    if (plan_.parts > 1) {
        let("k_part", in_turn ? rank / to_halide(plan_.tiles) : rank % plan_.parts);
    }
    inside.insert(inside.end(), body.begin(), body.end());
    tile::Block statements{tile::Statement{tile::Let{"tile", number}}};
    if (!plan_.persistent) {
        statements.insert(statements.end(), inside.begin(), inside.end());
        return statements;
    }
    statements.push_back({tile::If{tile < to_halide(plan_.tiles), std::move(inside)}});
    return {rolled("round", ceil_div(plan_.tiles, blocks_), std::move(statements))};
}

tile::Statement ProductPipeline::rolled(const std::string &name, const Extent &extent, tile::Block body) {
    tile::For loop{name, extent, Level::loop, std::move(body)};
    loop.rolled = true;
    return {std::move(loop)};
}

tile::Statement ProductPipeline::over_steps(tile::Block step) const { return rolled("k_step", plan_.k_steps, std::move(step)); }
Expr ProductPipeline::iteration(const Expr &step) const {
    const Expr round = plan_.turns > 1 ? tile::variable("round") * plan_.turns + tile::variable("turn") : tile::variable("round");
    return plan_.persistent ? round * to_halide(plan_.k_steps) + step : step;
}

tile::Block ProductPipeline::begin_step() const {
    return {tile::Statement{tile::Let{"iteration", iteration(tile::variable("k_step"))}},
            tile::Statement{tile::Let{"slot", tile::variable("iteration") % plan_.stages}}};
}

tile::Block ProductPipeline::places_of_step() const {
    Expr rest = tile::variable("k_step");
    if (plan_.parts > 1) {
        rest = rest + tile::variable("k_part") * to_halide(plan_.k_steps);
    }
    tile::Block lets;
    for (auto name = plan_.operands.taps.rbegin(); name != plan_.operands.taps.rend(); ++name) {
        if (*name == plan_.window) {
            continue;
        }
        const Expr extent = to_halide(nest_.find_axis(*name)->extent);
        lets.push_back({tile::Let{*name + "_tap", rest % extent}});
        rest = rest / extent;
    }
    lets.push_back({tile::Let{"k_first", rest * plan_.depth()}});
    return lets;
}

tile::Block ProductPipeline::over_window(tile::Block body) const {
    if (plan_.window.empty()) {
        return body;
    }
    return {tile::Statement{tile::For{plan_.window + "_tap", plan_.window_taps, Level::unroll, std::move(body)}}};
}

Expr ProductPipeline::tile_number(const MatrixOperand &operand) const {
    const Expr number = tile::variable(plan_.stays(operand) ? "k_step" : "slot");
    return plan_.slot_tiles(operand) > 1 ? number * plan_.slot_tiles(operand) + tile::variable(plan_.window + "_tap") : number;
}

tile::Block ProductPipeline::fetch(const MatrixOperand &operand) const {
    return plan_.has_window(operand) ? fetch_tile(operand) : over_window(fetch_tile(operand));
}

tile::Block ProductPipeline::fetch_tile(const MatrixOperand &operand) const {
    const bool is_left = operand.rows == plan_.shape.rows, once = plan_.stays(operand);
    const Expr term = tile::variable("k_first"), step = operand.read.packing > 1 ? term / operand.read.packing : term;
    Expr first = once ? Expr(0) : tile::variable(is_left ? "m_tile" : "n_tile") * operand.tile;
    if (is_left && plan_.turns > 1) {
        first = first + tile::variable("turn") * plan_.step_rows(operand);
    }
    const auto load = [&](const std::string &function, std::size_t dimensions, int row, const std::vector<Expr> &coordinates) {
        const Expr iteration = once ? Expr(0) : tile::variable("iteration");
        std::vector<tile::Invoke::Argument> arguments{buffer(operand.name, {tile_number(operand), Expr(row), Expr(0)}),
                                                      buffer(operand.name + "_map"), buffer(once ? "right_barriers" : "barriers"),
                                                      scalar(iteration)};
        for (const Expr &coordinate : coordinates) {
            arguments.push_back(scalar(coordinate));
        }
        return invoke(function, {once ? "1" : std::to_string(plan_.stages), std::to_string(dimensions)}, arguments);
    };
    if (operand.pixels) {
        return {load("bulk_load_pixels", operand.pixels->space.size(), 0,
                     operand.pixels->coordinates(first, step, tile::variable("n_tile") * plan_.shape.width))};
    }
    tile::Block block;
    for (int row = 0; row < (operand.transposed ? plan_.step_rows(operand) : 1); row += ProductPlan::chunk) {
        std::vector<Expr> coordinates;
        for (const std::string &name : operand.coordinates) {
            const Expr own = row ? first + row : first;
            coordinates.push_back(name == plan_.operands.k ? step
                                  : name == operand.rows   ? own
                                                           : tile::variable(name + (plan_.is_tap(name) ? "_tap" : "_batch")));
        }
        block.push_back(load("bulk_load", coordinates.size(), row, coordinates));
    }
    return block;
}

tile::Block ProductPipeline::fetch_once() const {
    tile::Block step = places_of_step();
    const tile::Block loads = fetch(plan_.operands.right.front());
    step.insert(step.end(), loads.begin(), loads.end());
    return {invoke("pipeline_acquire", {"1"},
                   {buffer("right_barriers"), scalar(Expr(0)), scalar(Expr(static_cast<int>(plan_.staying_bytes())))}),
            tile::Statement{tile::For{"k_step", plan_.k_steps, Level::loop, step}}};
}

int ProductPipeline::consumer_registers() const {
    const int at_launch = plan_.registers_at_launch(facts_);
    return std::min((at_launch * (plan_.shape.warpgroups + 1) - 24) / plan_.shape.warpgroups / 8 * 8, 240);
}

tile::Block ProductPipeline::produce() const {
    tile::Block step = begin_step();
    step.push_back(invoke("pipeline_acquire", {std::to_string(plan_.stages)},
                          {buffer("barriers"), scalar(tile::variable("iteration")), scalar(Expr(static_cast<int>(plan_.slot_bytes())))}));
    const tile::Block places = places_of_step();
    step.insert(step.end(), places.begin(), places.end());
    const auto append = [&](const MatrixOperand &operand) {
        const tile::Block loads = fetch(operand);
        step.insert(step.end(), loads.begin(), loads.end());
    };
    append(plan_.operands.left);
    if (!plan_.right_stays) {
        std::for_each(plan_.operands.right.begin(), plan_.operands.right.end(), append);
    }
    tile::Block steps{over_steps(std::move(step))};
    if (plan_.turns > 1) {
        steps = {tile::Statement{tile::For{"turn", plan_.turns, Level::loop, std::move(steps)}}};
    }
    tile::Block all = over_tiles(std::move(steps));
    if (plan_.right_stays) {
        const tile::Block once = fetch_once();
        all.insert(all.begin(), once.begin(), once.end());
    }
    return {invoke("registers_decrease", {"24"}, {}),
            tile::Statement{tile::If{tile::variable("thread.rank") == plan_.shape.warpgroups * ProductPlan::warpgroup, std::move(all)}}};
}

tile::Block ProductPipeline::multiply() const {
    const MatrixOperand &left = plan_.operands.left;
    const Expr own_rows =
        plan_.turns > 1 ? Expr(0) : tile::variable("thread.rank") / ProductPlan::warpgroup * (plan_.shape.chunks * ProductPlan::chunk);
    const Expr tap = plan_.window.empty() ? Expr(0) : tile::variable(plan_.window + "_tap");
    // A tap's rows begin so many rows behind those of the first: windows of neighbouring rows overlap.
    const auto window_row = [&](const MatrixOperand &operand) {
        return plan_.has_window(operand) ? tap * static_cast<int>(operand.pixels->space.front().dilation) : Expr(0);
    };
    const Expr accumulates = plan_.window.empty() ? tile::variable("k_step") > 0 : tile::variable("k_step") > 0 || tap > 0;
    tile::Block products;
    for (std::size_t i = 0; i < plan_.operands.right.size(); ++i) {
        const MatrixOperand &right = plan_.operands.right[i];
        const std::vector<std::string> templates{device_type(left.element), device_type(right.element), std::to_string(left.transposed),
                                                 std::to_string(right.transposed)};
        products.push_back(invoke(plan_.sums_apart ? "multiply_apart" : "multiply_tiles", templates,
                                  {buffer(plan_.sums_name(i)), buffer(left.name, {tile_number(left), own_rows + window_row(left), Expr(0)}),
                                   buffer(right.name, {tile_number(right), window_row(right), Expr(0)}), scalar(accumulates)},
                                  {plan_.sums_name(i)}));
    }
    return over_window(std::move(products));
}

tile::Block ProductPipeline::consume(const MatrixEpilogue &epilogue, const RowStages &rows) const {
    const Expr slot = tile::variable("slot"), at = tile::variable("iteration"), k_step = tile::variable("k_step");
    const MatrixOperand &left = plan_.operands.left;
    tile::Block step = begin_step();
    const bool computed = left.value.defined();
    step.push_back(invoke("pipeline_wait", {std::to_string(plan_.stages)}, {buffer("barriers"), scalar(at)},
                          computed ? std::vector<std::string>{left.name} : std::vector<std::string>()));
    if (computed) {
        step.push_back(load_fetched(left, plan_.shape, nest_));
        step.push_back(invoke("multiply_previous", {std::to_string(plan_.stages)}, {buffer("barriers"), scalar(at), scalar(k_step)},
                              {plan_.sums_name(0)}));
        step.push_back(compute_operand(left, plan_.operands.k, plan_.operands.type, plan_.shape, nest_));
        step.push_back(invoke("multiply_registers", {device_type(left.element), std::to_string(plan_.operands.right[0].transposed)},
                              {buffer(plan_.sums_name(0)), buffer("left_values"),
                               buffer(plan_.operands.right[0].name, {slot, Expr(0), Expr(0)}), scalar(k_step > 0)},
                              {plan_.sums_name(0), "left_values"}));
        step.push_back(invoke("multiply_commit", {}, {}));
    }
    if (!computed) {
        const tile::Block products = multiply();
        step.insert(step.end(), products.begin(), products.end());
        step.push_back(invoke("multiply_next", {std::to_string(plan_.stages)}, {buffer("barriers"), scalar(at), scalar(k_step)}));
    }
    tile::Block body{over_steps(std::move(step))};
    if (plan_.turns > 1) {
        body.insert(body.begin(),
                    invoke("turn_wait", {}, {buffer("turns"), scalar(tile::variable("turn")), scalar(tile::variable("round"))}));
        body.push_back(invoke("turn_pass", {std::to_string(plan_.turns)}, {buffer("turns"), scalar(tile::variable("turn"))}));
    }
    std::vector<std::string> all_sums;
    for (std::size_t i = 0; i < plan_.operands.right.size(); ++i) {
        all_sums.push_back(plan_.sums_name(i));
    }
    body.push_back(invoke("multiply_end", {std::to_string(plan_.stages)},
                          {buffer("barriers"), scalar(iteration(to_halide(plan_.k_steps) - 1))}, all_sums));
    for (std::size_t i = 0; i < plan_.operands.right.size(); ++i) {
        if (plan_.shape.parts > 1) {
            body.push_back(invoke("cluster_sum", {std::to_string(plan_.shape.parts), std::to_string(plan_.shape.warpgroups)},
                                  {buffer(plan_.sums_name(i)), buffer("whole_" + plan_.sums_name(i)), buffer("partials")},
                                  {plan_.sums_name(i), "whole_" + plan_.sums_name(i)}));
        } else if (plan_.shape.lanes > 2) {
            body.push_back(invoke("gather_columns", {}, {buffer(plan_.sums_name(i))}, {plan_.sums_name(i)}));
        }
    }
    const tile::Block row_stages = rows.statements(plan_.shape, plan_.row_blocks, plan_.persistent ? tile::variable("round") : Expr(0));
    const tile::Block stores = epilogue.statements(plan_.shape), finish = epilogue.finish(), last = rows.finish(plan_.row_blocks);
    body.insert(body.end(), row_stages.begin(), row_stages.end());
    body.insert(body.end(), stores.begin(), stores.end());
    tile::Block all = over_tiles(body);
    if (plan_.right_stays) {
        all.insert(all.begin(), invoke("pipeline_wait", {"1"}, {buffer("right_barriers"), scalar(Expr(0))}));
    }
    if (plan_.turns > 1) {
        all.insert(all.begin(), {tile::Let{"turn", tile::variable("thread.rank") / ProductPlan::warpgroup}});
    }
    all.insert(all.begin(), invoke("registers_increase", {std::to_string(consumer_registers())}, {}));
    all.insert(all.end(), finish.begin(), finish.end());
    all.insert(all.end(), last.begin(), last.end());
    return all;
}

}  // namespace tilewright
