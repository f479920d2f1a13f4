// Rows that many blocks share: for each digit, from the lowest, the blocks count their elements' digits, the counts become places, and the
// blocks sort what they hold by the digit and write it there.
#include <algorithm>

#include "dsl/algorithm/math.h"
#include "lowering/nests/invoke.h"
#include "lowering/nests/sort_launch.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {

constexpr int digit_bits = 8, digits = 1 << digit_bits;

/// Keys and places of the rows between two passes.
struct Between {
    tile::Buffer keys, places;
};

class Passes {
public:
    explicit Passes(const SortStage &stage)
        : stage_(stage), plan_(stage.plan), blocks_(ceil_div(stage.length, plan_.held())), threads_(std::to_string(plan_.threads)) {}

    std::vector<tile::Launch> run() {
        counts_ = scratch("counts", Halide::Int(32), {stage_.rows, digits, blocks_});
        totals_ = scratch("totals", Halide::Int(32), {stage_.rows, digits});
        const int passes = plan_.key.bits() / digit_bits;
        std::vector<Between> between;
        for (int i = 0; i < std::min(passes - 1, 2); ++i) {
            const std::string number = std::to_string(i);
            between.push_back({scratch("keys" + number, plan_.key, {stage_.rows, stage_.length}),
                               scratch("places" + number, Halide::Int(32), {stage_.rows, stage_.length})});
        }
        std::vector<tile::Launch> launches;
        for (int pass = 0; pass < passes; ++pass) {
            const Between *from = pass == 0 ? nullptr : &between[(pass - 1) % 2];
            const Between *to = pass + 1 == passes ? nullptr : &between[pass % 2];
            launches.push_back(count(pass, from));
            launches.push_back(sum(pass));
            launches.push_back(move(pass, from, to));
        }
        return launches;
    }

private:
    tile::Buffer scratch(const std::string &name, Halide::Type type, const std::vector<Extent> &extents) {
        return stage_.storage.scratch(identifier(stage_.stage().name()) + "_" + name, type, extents);
    }
    static std::string suffix(const char *part, int pass) { return std::string("_") + part + std::to_string(pass); }

    tile::Axis row_axis() const { return {"row", stage_.rows, {{"row_block", stage_.rows, Level::grid, 1, blocks_}}}; }
    tile::Axis place_axis() const {
        std::vector<tile::Leaf> leaves = held_by_warps(plan_);
        leaves.insert(leaves.begin(), {"place_block", blocks_, Level::grid, plan_.held(), 1});
        return {"place", stage_.length, leaves};
    }
    /// Elements of the row from tensor or scratch into the thread's registers.
    tile::Statement hold(SortLaunch &sort, const Between *from) const {
        const Expr row = tile::variable("row");
        if (!from) {
            return sort.hold(row);
        }
        return sort.hold(row, from->keys, from->places);
    }

    tile::Launch count(int pass, const Between *from) {
        const tile::Axis digit = walked_by("digit", digits, plan_.threads);
        SortLaunch sort(stage_, suffix("count", pass), {row_axis(), place_axis(), digit}, stage_.rows * blocks_);
        const tile::Buffer of_block = sort.add(tile::Memory::shared, "of_block", Halide::Int(32), digits);
        tile::Block &body = sort.launch().body;
        body.push_back(hold(sort, from));
        body.push_back(sort.call("count_digits", {threads_},
                                 {buffer(sort.name("key")), scalar(Expr(pass * digit_bits)), buffer(of_block.name)}, {sort.name("key")},
                                 {of_block.name}));
        const Expr d = tile::variable("digit");
        sort.values().use(counts_);
        body.push_back(walk(
            digit, {{tile::Store{counts_.name, {tile::variable("row"), d, tile::variable("place_block")}, {tile::read(of_block, {d})}}}}));
        return std::move(sort.launch());
    }

    /// A warp for each digit of each row.
    tile::Launch sum(int pass) {
        const int warps = plan_.warps();
        const Extent blocks = stage_.rows * (digits / warps);
        const tile::Axis row{"row", stage_.rows, {{"row_block", stage_.rows, Level::grid, 1, digits / warps}}};
        const tile::Axis digit{
            "digit", digits, {{"digit_block", digits / warps, Level::grid, warps, 1}, {"digit_warp", warps, Level::thread, 1, 32}}};
        SortLaunch sort(stage_, suffix("sum", pass), {row, digit}, blocks);
        sort.values().use(counts_);
        sort.values().use(totals_);
        const Expr r = tile::variable("row"), d = tile::variable("digit");
        sort.launch().body.push_back(sort.call(
            "sum_before_blocks", {}, {buffer(counts_.name, {r, d, Expr(0)}), scalar(to_halide(blocks_)), buffer(totals_.name, {r, d})},
            {counts_.name}, {counts_.name, totals_.name}));
        return std::move(sort.launch());
    }

    tile::Launch move(int pass, const Between *from, const Between *to) {
        const int shift = pass * digit_bits;
        const tile::Axis rank{"rank",
                              stage_.length,
                              {{"place_block", blocks_, Level::grid, plan_.held(), 1},
                               {"rank_step", plan_.items, Level::loop, plan_.threads, 1},
                               {"rank_thread", plan_.threads, Level::thread, 1, 1}}};
        SortLaunch sort(stage_, suffix("move", pass), {row_axis(), place_axis(), rank}, stage_.rows * blocks_);
        const Expr row = tile::variable("row"), block = tile::variable("place_block");
        tile::Block &body = sort.launch().body;
        body.push_back(hold(sort, from));
        const tile::Buffer sorted = sort.add(tile::Memory::shared, "sorted", plan_.key, plan_.held());
        const tile::Buffer order = sort.add(tile::Memory::shared, "order", Halide::Int(32), plan_.held());
        const tile::Buffer bases = sort.add(tile::Memory::shared, "bases", Halide::Int(32), digits);
        sort.add(tile::Memory::shared, "counts_of_warps", Halide::Int(32), std::int64_t{digits} * plan_.warps());
        sort.add(tile::Memory::shared, "starts", Halide::Int(32), digits);
        sort.add(tile::Memory::shared, "scratch", Halide::Int(32), 32);
        sort.values().use(counts_);
        sort.values().use(totals_);
        body.push_back(
            sort.call("sort_by_digit", {threads_},
                      {buffer(sort.name("key")), buffer(sort.name("place")), scalar(Expr(shift)), buffer(sorted.name), buffer(order.name),
                       buffer(sort.name("counts_of_warps")), buffer(sort.name("starts")), buffer(sort.name("scratch"))},
                      {sort.name("key"), sort.name("place")}, {sorted.name, order.name, sort.name("starts")}));
        body.push_back(
            sort.call("place_block", {threads_},
                      {buffer(totals_.name, {row, Expr(0)}), buffer(counts_.name, {row, Expr(0), block}), scalar(to_halide(blocks_)),
                       buffer(sort.name("starts")), buffer(bases.name), buffer(sort.name("scratch"))},
                      {totals_.name, counts_.name, sort.name("starts")}, {bases.name}));
        body.push_back(store(sort, shift, to, sorted, order, bases));
        return std::move(sort.launch());
    }

    /// What the block has in order goes to its places in the row: to where the next pass reads it, or to the results.
    tile::Statement store(SortLaunch &sort, int shift, const Between *to, const tile::Buffer &sorted, const tile::Buffer &order,
                          const tile::Buffer &bases) const {
        const Expr row = tile::variable("row"), step = tile::variable("rank_step") * plan_.threads + tile::variable("rank_thread");
        const Expr own = tile::variable("own"), place = tile::variable("to");
        const Expr key = tile::read(sorted, {own});
        const Expr digit = math::call(Halide::Int(32), "digit_of", {key, Expr(shift)});
        tile::Block body{
            {tile::Let{"own", step}}, {tile::Let{"to", tile::read(bases, {digit}) + own}}, {tile::Let{"from", tile::read(order, {own})}}};
        tile::Block stores;
        if (to) {
            sort.values().use(to->keys);
            sort.values().use(to->places);
            stores = {{tile::Store{to->keys.name, {row, place}, {key}}},
                      {tile::Store{to->places.name, {row, place}, {tile::variable("from")}}}};
        } else {
            stores = sort.store_result(row, place, key, "from");
            if (!(stage_.count == stage_.length)) {
                stores = {{tile::If{place < to_halide(stage_.count), std::move(stores)}}};
            }
        }
        body.insert(body.end(), stores.begin(), stores.end());
        const tile::Axis &rank = sort.launch().axes.back();
        return {tile::For{"rank_step", plan_.items, Level::loop, within(rank, std::move(body))}};
    }

    const SortStage &stage_;
    const SortPlan &plan_;
    Extent blocks_;  ///< that share a row
    std::string threads_;
    tile::Buffer counts_, totals_;
};

}  // namespace

std::vector<tile::Launch> sort_by_passes(const SortStage &sort) { return Passes(sort).run(); }

}  // namespace tilewright
