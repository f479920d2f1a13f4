#include "lowering/passes/lower_streaming.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/passes/invoke.h"
#include "lowering/passes/nest.h"
#include "lowering/passes/streamed_scores.h"
#include "lowering/passes/streaming_launch.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int chunk = StreamingLaunch::chunk, group_columns = StreamingLaunch::group_columns;

std::int64_t round_up(std::int64_t x, std::int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

void append(tile::Block &block, tile::Block more) { block.insert(block.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end())); }

class StreamingLowering {
public:
    explicit StreamingLowering(StreamingLaunch &stream) : stream_(stream) { find_range(); }

    tile::Launch run() {
        tile::Block &body = stream_.launch.body;
        body.push_back({tile::Comment{"Full and empty barriers of the pipelines"}});
        body.push_back(invoke("pipeline_begin", {"1"}, {buffer("query_barriers"), scalar(Expr(stream_.warpgroups))}));
        for (const char *barriers : {"key_barriers", "value_barriers"}) {
            body.push_back(invoke("pipeline_begin", {std::to_string(stream_.stages)}, {buffer(barriers), scalar(Expr(stream_.warpgroups))}));
        }
        append(body, place_of_block());
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        tile::Block producer = produce();
        producer.push_back({tile::Exit{}});
        body.push_back({tile::If{tile::variable("thread.rank") >= stream_.warpgroups * 128, std::move(producer)}});
        append(body, consume());
        return std::move(stream_.launch);
    }

private:
    // ---- The block's place, and the tiles that it visits ----
    /// Groups of stream_.raster planes side by side: their blocks share keys and values in the L2 cache, the longest first.
    tile::Block place_of_block() const {
        tile::Block block;
        const auto let = [&](const std::string &name, const Expr &value) { block.push_back({tile::Let{name, value}}); };
        const Expr in_stripe = tile::variable("place_in_stripe"), stripe = tile::variable("block_stripe"), width = tile::variable("stripe_planes");
        const Expr per_stripe = to_halide(stream_.row_tiles) * stream_.raster;
        let("block_stripe", tile::variable("block.rank") / per_stripe * stream_.raster);
        let("place_in_stripe", tile::variable("block.rank") % per_stripe);
        let("stripe_planes", Halide::min(to_halide(stream_.planes) - stripe, stream_.raster));
        const Expr row = in_stripe / width;
        let("m_tile", range_.last.defined() ? to_halide(stream_.row_tiles) - 1 - row : row);
        let("block_plane", stripe + in_stripe % width);
        Expr plane = tile::variable("block_plane");
        for (auto i = stream_.batch.rbegin(); i != stream_.batch.rend(); ++i) {
            const Expr extent = to_halide(stream_.second.extents[*i]);
            let(stream_.axis_name(*i) + "_tile", i + 1 == stream_.batch.rend() ? plane : plane % extent);
            plane = plane / extent;
        }
        let("first_tile", first_tile_);
        let("tile_count", tile_count_);
        return block;
    }

    void find_range() {
        const Expr streamed = tile::variable(stream_.form.streamed), extent = to_halide(stream_.form.streamed_extent);
        std::vector<Expr> masks = stream_.form.masks;
        const bool exact = mod(stream_.form.streamed_extent, stream_.keys) == Extent(0);
        Expr any;
        for (const Expr &mask : masks) {
            any = any.defined() ? any && mask : mask;
        }
        const Expr row = tile::variable("m_tile") * stream_.rows;
        range_ = any.defined() ? possible_range(any, stream_.form.streamed, stream_.rows_between(row, stream_.rows)) : PossibleRange{};
        if (!exact) {
            masks.push_back(streamed < extent);
        }
        const auto narrow = [&](const Expr &e) { return Halide::cast<int>(Halide::clamp(e, Halide::cast<std::int64_t>(0), Halide::cast<std::int64_t>(extent) - 1)); };
        first_tile_ = range_.first.defined() ? stream_.bound(narrow(range_.first)) / stream_.keys : Expr(0);
        const Expr end = range_.last.defined() ? stream_.bound(narrow(range_.last)) / stream_.keys + 1 : to_halide(stream_.key_tiles);
        tile_count_ = range_.is_bounded() ? Halide::max(end - tile::variable("first_tile"), 1) : end;
        scores_.emplace(stream_, std::move(masks));
    }

    // ---- The producer ----
    tile::Block fetch(const std::string &name, const StreamedOperand &operand, int chunks, int stages, const Expr &iteration, const Expr &first_row) {
        const bool staged = name != "query";
        const std::vector<int> order = stream_.dimensions(operand);
        tile::Block block;
        for (int c = 0; c < chunks; ++c) {
            std::vector<Expr> place{Expr(c), Expr(0), Expr(0)};
            if (staged) {
                place.insert(place.begin(), tile::variable("slot"));
            }
            std::vector<tile::Invoke::Argument> arguments{buffer(name + "_tile", place), buffer(name + "_map"), buffer(name + "_barriers"), scalar(iteration)};
            for (int d : order) {
                arguments.push_back(scalar(d == operand.inner ? Expr(c * chunk) : d == operand.outer ? first_row : stream_.bound(operand.indices[d])));
            }
            block.push_back(invoke("bulk_load", {std::to_string(stages), std::to_string(order.size())}, arguments));
        }
        return block;
    }
    tile::Block produce() {
        const int bytes = stream_.form.type.bytes() * chunk;
        const Expr iteration = tile::variable("iteration");
        tile::Block work{invoke("pipeline_acquire", {"1"}, {buffer("query_barriers"), scalar(Expr(0)), scalar(Expr(stream_.depth_chunks * stream_.rows * bytes))})};
        append(work, fetch("query", stream_.form.query, stream_.depth_chunks, 1, Expr(0), tile::variable("m_tile") * stream_.rows));
        tile::Block step{{tile::Let{"slot", iteration % stream_.stages}}, {tile::Let{"first_key", stream_.tile_at(iteration) * stream_.keys}}};
        const auto copy = [&](const std::string &name, const StreamedOperand &operand, int chunks) {
            step.push_back(invoke("pipeline_acquire", {std::to_string(stream_.stages)},
                                  {buffer(name + "_barriers"), scalar(iteration), scalar(Expr(chunks * stream_.keys * bytes))}));
            append(step, fetch(name, operand, chunks, stream_.stages, iteration, tile::variable("first_key")));
        };
        copy("key", stream_.form.key, stream_.depth_chunks);
        copy("value", stream_.form.value, stream_.column_chunks);
        append(work, {{tile::For{"iteration", tile_count_loop(), Level::loop, std::move(step)}}});
        return {invoke("registers_decrease", {"24"}, {}), tile::Statement{tile::If{tile::variable("thread.rank") == stream_.warpgroups * 128, std::move(work)}}};
    }
    /// The loop's extent is a value of the block; the tile IR spells extents as symbols.
    static Extent tile_count_loop() { return Extent::symbol("tile_count"); }

    // ---- Consumers ----
    tile::Block consume() {
        tile::Block block{invoke("registers_increase", {std::to_string(stream_.consumer_registers())}, {}),
                          invoke("stream_begin", {}, {buffer("sums"), buffer("maximum"), buffer("total")}, {"sums", "maximum", "total"})};
        const std::string turns = std::to_string(stream_.warpgroups);
        if (stream_.takes_turns) {
            block.push_back(invoke("turns_begin", {turns}, {}));
        }
        block.push_back(invoke("pipeline_wait", {"1"}, {buffer("query_barriers"), scalar(Expr(0))}));
        append(block, first_step());
        append(block, {{tile::For{"step", tile_count_loop() + Extent(-1), Level::loop, later_step()}}});
        block.push_back({tile::Let{"last_step", tile::variable("tile_count") - 1}});
        append(block, add_values(tile::variable("last_step")));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        if (stream_.takes_turns) {
            block.push_back(invoke("turns_end", {turns}, {}));
        }
        block.push_back(invoke("stream_end", {}, {buffer("sums"), buffer("total")}, {"sums", "total"}));
        append(block, finish());
        return block;
    }
    std::string element() const { return stream_.form.type.is_bfloat() ? "tw::bfloat16" : "tw::half"; }

    tile::Block turn(const char *function) const {
        return stream_.takes_turns ? tile::Block{invoke(function, {std::to_string(stream_.warpgroups)}, {})} : tile::Block{};
    }
    /// Scores of the iteration's keys, under way.
    tile::Block multiply_keys(const Expr &iteration) const {
        const int steps = static_cast<int>(round_up(stream_.form.depth_extent.value(), 16) / 16);
        const Expr own_rows = tile::variable("thread.rank") / 128 * chunk;
        return {invoke("multiply_keys", {element(), std::to_string(steps), std::to_string(stream_.rows)},
                       {buffer("scores"), buffer("query_tile", {0, own_rows, 0}), buffer("key_tile", {iteration % stream_.stages, 0, 0, 0})}, {"scores"})};
    }
    /// The iteration's values, weighted, on their way into the sums.
    tile::Block add_values(const Expr &iteration) const {
        return {invoke("pipeline_wait", {std::to_string(stream_.stages)}, {buffer("value_barriers"), scalar(iteration)}),
                invoke("multiply_values", {element()}, {buffer("sums"), buffer("weights"), buffer("value_tile", {iteration % stream_.stages, 0, 0, 0})}, {"sums"})};
    }
    tile::Statement release(const char *barriers, const Expr &iteration) const {
        return invoke("stream_release", {std::to_string(stream_.stages)}, {buffer(barriers), scalar(iteration)});
    }
    /// From scores to weights: the score function, masks, the online softmax.
    tile::Block weigh() {
        tile::Block block = scores_->change();
        block.push_back(invoke("stream_softmax", {},
                               {buffer("scores"), buffer("maximum"), buffer("total"), buffer("decay"),
                                scalar(Expr(static_cast<float>(stream_.form.scale * 1.4426950408889634)))},
                               {"scores", "maximum", "total", "decay"}));
        return block;
    }
    tile::Statement pack() const { return invoke("pack_weights", {element()}, {buffer("weights"), buffer("scores")}, {"weights"}); }

    tile::Block first_step() {
        tile::Block block{invoke("pipeline_wait", {std::to_string(stream_.stages)}, {buffer("key_barriers"), scalar(Expr(0))})};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(Expr(0)));
        append(block, turn("turn_pass"));
        append(block, scores_->load_ahead(Expr(0)));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        block.push_back(release("key_barriers", Expr(0)));
        append(block, weigh());
        block.push_back(pack());
        return {{tile::For{"start", 1, Level::loop, std::move(block)}}};
    }
    tile::Block later_step() {
        const Expr step = tile::variable("step"), next = tile::variable("next");
        tile::Block block{{tile::Let{"next", step + 1}}, invoke("pipeline_wait", {std::to_string(stream_.stages)}, {buffer("key_barriers"), scalar(next)})};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(next));
        append(block, add_values(step));
        append(block, turn("turn_pass"));
        append(block, scores_->load_ahead(next));
        block.push_back(invoke("multiply_wait", {"1"}, {}));
        block.push_back(release("key_barriers", next));
        append(block, weigh());
        block.push_back(invoke("stream_overlap", {}, {buffer("total")}, {"total"}));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        block.push_back(release("value_barriers", step));
        block.push_back(invoke("rescale_sums", {}, {buffer("sums"), buffer("decay")}, {"sums"}));
        block.push_back(pack());
        return block;
    }

    // ---- What is stored ----
    /// A quotient by a value of the row becomes a product: the row's reciprocal is taken once. What is stored rounds more coarsely.
    class Reciprocals : public hi::IRGraphMutator {
    public:
        explicit Reciprocals(const std::string &column) : column_(column) {}

    private:
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Div *op) override {
            if (!op->type.is_float() || mentions(op->b, column_)) {
                return hi::IRGraphMutator::visit(op);
            }
            return mutate(op->a) * (hi::make_one(op->type) / op->b);
        }
        const std::string &column_;
    };
    tile::Block finish() {
        tile::Block block;
        if (stream_.form.row_factor.defined()) {
            const Expr sum = stream_.kept("sums", {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")});
            tile::Store scaled{"sums", {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")}, {sum * stream_.bound(stream_.form.row_factor)}};
            append(block, over_sums({{scaled}}));
        }
        tile::Block wide, narrow;
        for (int output : stream_.form.outputs) {
            const Stage &stage = stream_.algorithm.stages[output];
            const std::map<std::string, Expr> places = places_on_axes(stage, stream_.form.axes);
            std::vector<Expr> indices;
            for (const std::string &argument : stage.func.function().args()) {
                indices.push_back(places.at(argument));
            }
            const hi::Function function = stage.func.function();
            Expr value = function.has_update_definition() ? Expr(hi::Call::make(function, indices, 0))
                                                          : expand_stages(stream_.algorithm, function.definition().values()[0], places);
            const bool along_columns = static_cast<int>(indices.size()) > stream_.form.column && mentions(indices[stream_.form.column], stream_.axis_name(stream_.form.column));
            for (const tile::Buffer &target : stream_.storage.targets(output, 0)) {
                const bool rounds = along_columns && target.types[0].bits() == 16;
                const Expr stored = rounds ? Reciprocals(stream_.axis_name(stream_.form.column)).mutate(value) : value;
                (along_columns ? wide : narrow).push_back({tile::Store{stream_.used(target).name, indices, {stream_.bound(stored)}}});
            }
        }
        if (!wide.empty()) {
            append(block, over_sums(guarded(stream_.form.column, guarded(stream_.form.row, std::move(wide)))));
        }
        if (!narrow.empty()) {
            tile::Block rows{{tile::For{"m_half", 2, Level::unroll, guarded(stream_.form.row, std::move(narrow))}}};
            block.push_back({tile::If{tile::variable("thread.rank") % 4 == 0, std::move(rows)}});
        }
        return block;
    }
    tile::Block over_sums(tile::Block body) const {
        body = {{tile::For{"n_lane", 8, Level::vector, std::move(body)}}};
        body = {{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
        return {{tile::For{"n_group", stream_.columns / group_columns, Level::unroll, std::move(body)}}};
    }
    tile::Block guarded(int axis, tile::Block body) const {
        if (!stream_.launch.axes[axis].exact()) {
            body = {{tile::If{tile::variable(stream_.axis_name(axis)) < to_halide(stream_.second.extents[axis]), std::move(body)}}};
        }
        return body;
    }

    StreamingLaunch &stream_;
    std::optional<StreamedScores> scores_;
    PossibleRange range_;            ///< of the streamed axis, for the block's rows
    Expr first_tile_, tile_count_;
};

}  // namespace

std::optional<int> streaming_stage(const Kernel &kernel, const ScheduledKernel &schedule) {
    for (std::size_t i = 0; i < kernel.algorithm.stages.size(); ++i) {
        const ScheduledStage *stage = schedule.find(kernel.algorithm.stages[i].name());
        if (stage && stage->find_flag("stream")) {
            return static_cast<int>(i);
        }
    }
    return std::nullopt;
}

tile::Launch lower_streaming(const Kernel &kernel, int stage, const ScheduledKernel &schedule, const GpuFacts &facts) {
    const auto form = match_streaming(kernel.algorithm, facts);
    const std::string &name = kernel.algorithm.stages[stage].name();
    if (!form || form->second != stage) {
        schedule_error(schedule.find(name)->find_flag("stream")->directive.location, name,
                       "its kernel is no pair of half-precision products joined by a softmax, with operands that the copy unit can fetch",
                       "remove stream, or compute the stages at the root");
    }
    Placement placement;
    placement.nest_of.assign(kernel.algorithm.stages.size(), -1);
    const Storage storage(kernel.algorithm, placement);
    StreamingLaunch stream(kernel, *form, storage, schedule, facts);
    return StreamingLowering(stream).run();
}

}  // namespace tilewright
