#include "lowering/nests/staged_reads.h"

#include <algorithm>
#include <numeric>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/block_tile.h"
#include "lowering/nests/square_tile.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class ReadTile : public hi::IRGraphMutator {
public:
    ReadTile(const std::string &source, const tile::Buffer &tile, const TileRegion &region, const VariableRanges &ranges)
        : source_(source), tile_(tile), region_(region), ranges_(ranges) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        if (op->call_type != hi::Call::Halide || op->name != source_) {
            return hi::IRGraphMutator::visit(op);
        }
        std::vector<Expr> place;
        for (std::size_t i = 0; i < op->args.size(); ++i) {
            place.push_back(difference_of(op->args[i], region_.origin[i], ranges_));
        }
        return tile::read(tile_, place);
    }

private:
    const std::string &source_;
    const tile::Buffer &tile_;
    const TileRegion &region_;
    const VariableRanges &ranges_;
};

std::vector<int> memory_order(const tile::Buffer &buffer) {
    std::vector<int> order(buffer.extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const Extent &x = buffer.strides[a], &y = buffer.strides[b];
        return x.is_constant() && y.is_constant() && x.value() > y.value();
    });
    return order;
}

}  // namespace

std::vector<std::vector<Expr>> places_read(const std::vector<Expr> &terms, const std::string &tensor) {
    std::vector<std::vector<Expr>> places;
    for (const Expr &term : terms) {
        visit_reads(term, [&](const hi::Call *call) {
            if (call->name == tensor) {
                places.push_back(call->args);
            }
        });
    }
    return places;
}

void stage_reads(NestWork &work, const Stage &stage, std::vector<Expr> &terms) {
    for (const ScheduledStage &copy : work.schedule.stages) {
        if (copy.copy_for != stage.name() || !copy.is_edited || !work.kernel.algorithm.find_input(copy.copy_of)) {
            continue;
        }
        const tile::Buffer source = work.storage.input(copy.copy_of);
        if (copy.find_flag("swizzle")) {
            stage_squares(work, stage, copy, source, terms);
            continue;
        }
        const std::vector<std::vector<Expr>> places = places_read(terms, source.name);
        const std::set<std::string> around = loops_around_tile(work.nest, work.stage(work.nest.anchor).name(), copy);
        const auto region = places.empty() ? std::nullopt : tile_region(work.nest, places, around);
        if (!region) {
            schedule_error(copy.at_location, copy.name,
                           fmt::format("a block of '{}' does not read a box of '{}'", stage.name(), copy.copy_of), "remove the copy");
        }
        const tile::Buffer tile = tile_buffer(work, stage.name() + "_" + copy.copy_of + "_tile", source.types[0], *region, places.front(),
                                              memory_order(source).back());
        fill_tile(work, tile, *region, source.extents, memory_order(source), around,
                  [&](const std::vector<Expr> &at) { return tile::read(source, at); });
        ReadTile read_tile(source.name, tile, *region, work.nest.ranges);
        for (Expr &term : terms) {
            term = read_tile.mutate(term);
        }
        work.staged.insert(copy.name);
    }
}

void require_staged(const NestWork &work, const Stage &stage) {
    for (const ScheduledStage &copy : work.schedule.stages) {
        if (copy.copy_for == stage.name() && copy.is_edited && !work.staged.count(copy.name)) {
            schedule_error(copy.at_location, copy.name, "it is no tile of one axis of threads and registers by an unrolled number of terms",
                           "remove the copy");
        }
    }
}

}  // namespace tilewright
