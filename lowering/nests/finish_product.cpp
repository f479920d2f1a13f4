#include "lowering/nests/finish_product.h"

#include <algorithm>

#include "dsl/algorithm/math.h"
#include "lowering/nests/stage_values.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {

constexpr int lanes = 4;  // neighbours a thread: 16 bytes of sums
constexpr int threads = 128;

/// A block for a piece of each row. The terms are summed already: their axes are gone.
void spread(Nest &nest, const std::string &columns, tile::Launch &launch) {
    for (const Member &member : nest.members) {
        std::erase_if(nest.axes, [&](const tile::Axis &axis) { return member.reduction_axes.count(axis.name) > 0; });
    }
    Extent blocks = 1;
    const auto over_blocks = [&](tile::Axis &axis, const Extent &count, const Extent &stride) {
        axis.leaves.insert(axis.leaves.begin(), {axis.name + "_block", count, Level::grid, stride, blocks});
        blocks = blocks * count;
    };
    tile::Axis &along = *std::find_if(nest.axes.begin(), nest.axes.end(), [&](const tile::Axis &a) { return a.name == columns; });
    along.leaves = {{"column_thread", threads, Level::thread, lanes, 1}, {"column_lane", lanes, Level::vector, 1, 1}};
    over_blocks(along, ceil_div(along.extent, threads * lanes), threads * lanes);
    for (tile::Axis &axis : nest.axes) {
        if (axis.name != columns) {
            axis.leaves.clear();
            over_blocks(axis, axis.extent, 1);
        }
    }
    launch.axes = nest.axes;
    launch.blocks = blocks;
    launch.threads = threads;
}

tile::Buffer total_of(std::size_t product, const tile::Buffer &partial) {
    return tile::dense_buffer(product == 0 ? "total" : "total_" + std::to_string(product + 1), partial.types, tile::Memory::registers,
                              {lanes});
}

}  // namespace

tile::Launch finish_product(const Kernel &kernel, const Placement &placement, Nest nest, const std::vector<int> &products,
                            const std::vector<tile::Buffer> &partials, const std::string &columns, Storage &storage) {
    tile::Launch launch;
    launch.name = identifier(kernel.name + "_" + kernel.algorithm.stages[products.front()].name() + "_finish");
    spread(nest, columns, launch);
    StageValues values(kernel, nest, placement, storage, launch);
    const Expr lane = tile::variable("column_lane");
    tile::Block body;
    for (std::size_t i = 0; i < products.size(); ++i) {
        const tile::Buffer total = total_of(i, partials[i]);
        launch.buffers.push_back(partials[i]);
        launch.buffers.push_back(total);
        Expr sum;
        for (int part = 0; part < partials[i].extents[0].value(); ++part) {
            std::vector<Expr> place{Expr(part)};
            const std::vector<Expr> &own = nest.find_member(products[i])->places;
            place.insert(place.end(), own.begin(), own.end());
            const Expr term = tile::read(partials[i], place);
            sum = sum.defined() ? math::add(sum, term) : term;
        }
        body.push_back({tile::Store{total.name, {lane}, {sum}}});
        values.keep(products[i], total, {lane});
    }
    for (const Member &member : nest.members) {
        const auto product = std::find(products.begin(), products.end(), member.stage);
        const Halide::Func &func = kernel.algorithm.stages[member.stage].func;
        for (int i = 0; i < func.outputs(); ++i) {
            for (const tile::Buffer &target : storage.targets(member.stage, i)) {
                const Expr value = product != products.end()
                                       ? tile::read(total_of(product - products.begin(), partials[product - products.begin()]), {lane})
                                       : values.evaluate(func.function().definition().values()[i], member.environment, member.stage);
                body.push_back({tile::Store{values.use(target).name, member.places, {value}}});
            }
        }
    }
    const tile::Axis &along = *nest.find_axis(columns);
    if (!along.exact()) {
        body = {tile::Statement{tile::If{tile::variable(columns) < to_halide(along.extent), std::move(body)}}};
    }
    launch.body = {tile::Statement{tile::For{"column_lane", lanes, Level::vector, std::move(body)}}};
    return launch;
}

}  // namespace tilewright
