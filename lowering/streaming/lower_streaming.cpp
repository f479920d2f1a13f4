#include "lowering/streaming/lower_streaming.h"

#include <algorithm>

#include "dsl/error.h"
#include "lowering/nests/invoke.h"
#include "lowering/nests/nest.h"
#include "lowering/passes/append.h"
#include "lowering/streaming/streamed_output.h"
#include "lowering/streaming/streamed_parts.h"
#include "lowering/streaming/streamed_scores.h"
#include "lowering/streaming/streamed_work.h"
#include "lowering/streaming/streaming_launch.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

std::int64_t round_up(std::int64_t x, std::int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

class StreamingLowering {
public:
    /// `parts` where blocks share the keys of a tile.
    StreamingLowering(StreamingLaunch &stream, StreamedParts *parts)
        : stream_(stream), parts_(parts), work_(stream), scores_(stream, work_.masks()) {}

    tile::Launch run() {
        tile::Block &body = stream_.launch.body;
        body.push_back({tile::Comment{"Full and empty barriers of the pipelines"}});
        body.push_back(invoke("pipeline_begin", {"1"}, {buffer("query_barriers"), scalar(Expr(stream_.warpgroups))}));
        for (const StreamedTile *tile : staged_tiles()) {
            body.push_back(invoke("pipeline_begin", {stages()}, {buffer(tile->barriers()), scalar(Expr(stream_.warpgroups))}));
        }
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        tile::Block producer = produce();
        producer.push_back({tile::Exit{}});
        body.push_back({tile::If{tile::variable("thread.rank") >= stream_.warpgroups * 128, std::move(producer)}});
        append(body, consume());
        // Barriers behind the tiles: between them each would leave the rest of a swizzled atom unused.
        std::stable_partition(stream_.launch.buffers.begin(), stream_.launch.buffers.end(),
                              [](const tile::Buffer &b) { return b.alignment == StreamingLaunch::atom; });
        return std::move(stream_.launch);
    }

private:
    std::string stages() const { return std::to_string(stream_.stages); }
    /// In the order in which they are fetched.
    std::vector<const StreamedTile *> staged_tiles() const {
        std::vector<const StreamedTile *> tiles{&stream_.key};
        for (const StreamedTile &tile : scores_.tiles()) {
            tiles.push_back(&tile);
        }
        tiles.push_back(&stream_.value);
        return tiles;
    }

    // ---- The producer ----
    /// Copies the tile that begins at `inner` and `outer` of its operand.
    tile::Block fetch(const StreamedTile &tile, int slots, const Expr &iteration, const Expr &inner, const Expr &outer) {
        const std::vector<int> order = copied_dimensions(stream_.algorithm, tile.operand);
        tile::Block block;
        for (int c = 0; c < tile.chunks; ++c) {
            std::vector<Expr> place{Expr(c), Expr(0), Expr(0)};
            if (slots > 1 || &tile != &stream_.query) {
                place.insert(place.begin(), tile::variable("slot"));
            }
            std::vector<tile::Invoke::Argument> arguments{buffer(tile.name + "_tile", place), buffer(tile.name + "_map"),
                                                          buffer(tile.barriers()), scalar(iteration)};
            for (int d : order) {
                const Expr constant = d == tile.operand.inner || d == tile.operand.outer ? Expr() : stream_.bound(tile.operand.indices[d]);
                arguments.push_back(scalar(d == tile.operand.inner   ? inner + c * tile.chunk_columns
                                           : d == tile.operand.outer ? outer
                                                                     : constant));
            }
            block.push_back(invoke("bulk_load", {std::to_string(slots), std::to_string(order.size())}, arguments));
        }
        return block;
    }
    tile::Block produce() {
        const Expr first_row = stream_.first_row(), first_key = tile::variable("first_key"), iteration = tile::variable("iteration");
        tile::Block step{{tile::Let{"iteration", work_.iteration(tile::variable("step"))}},
                         {tile::Let{"slot", iteration % stream_.stages}},
                         {tile::Let{"first_key", stream_.tile_at(tile::variable("step")) * stream_.keys}}};
        for (const StreamedTile *tile : staged_tiles()) {
            const bool is_score = tile != &stream_.key && tile != &stream_.value;
            step.push_back(
                invoke("pipeline_acquire", {stages()}, {buffer(tile->barriers()), scalar(iteration), scalar(Expr(tile->bytes()))}));
            append(step, fetch(*tile, stream_.stages, iteration, is_score ? first_key : Expr(0), is_score ? first_row : first_key));
        }
        tile::Block work = fetch(stream_.query, 1, work_.round(), Expr(0), first_row);
        append(work, {{tile::For{"step", StreamedWork::tile_count(), Level::loop, std::move(step)}}});
        const auto announce = [&](const Expr &exists) {
            const Expr bytes = hi::is_const_one(exists) ? Expr(stream_.query.bytes()) : Halide::select(exists, stream_.query.bytes(), 0);
            return tile::Block{invoke("pipeline_acquire", {"1"}, {buffer("query_barriers"), scalar(work_.round()), scalar(bytes)})};
        };
        tile::Block pieces = work_.produced(announce, std::move(work));
        return {invoke("registers_decrease", {std::to_string(stream_.producer_registers())}, {}),
                tile::Statement{tile::If{tile::variable("thread.rank") == stream_.warpgroups * 128, std::move(pieces)}}};
    }

    // ---- Consumers ----
    tile::Block consume() {
        tile::Block block{invoke("registers_increase", {std::to_string(stream_.consumer_registers())}, {})};
        append(block, turn("turns_begin"));
        append(block, work_.consumed({invoke("pipeline_wait", {"1"}, {buffer("query_barriers"), scalar(work_.round())})}, consume_piece(),
                                     turn("turns_end")));
        return block;
    }
    tile::Block consume_piece() {
        tile::Block block{invoke("stream_begin", {}, {buffer("sums"), buffer("maximum"), buffer("total")}, {"sums", "maximum", "total"})};
        append(block, first_step());
        append(block, {{tile::For{"step", StreamedWork::tile_count() + Extent(-1), Level::loop, later_step()}}});
        if (stream_.persistent) {
            block.push_back(invoke("stream_release", {"1"}, {buffer("query_barriers"), scalar(work_.round())}));
        }
        block.push_back({tile::Let{"last_step", tile::variable("tile_count") - 1}});
        append(block, add_values(tile::variable("last_step")));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        if (stream_.persistent) {
            block.push_back(release(stream_.value, tile::variable("last_step")));
        }
        block.push_back(invoke("stream_end", {}, {buffer("sums"), buffer("total")}, {"sums", "total"}));
        if (parts_) {
            append(block, parts_->finish());
        }
        if (stream_.in_cluster) {
            block.push_back({tile::If{StreamedParts::is_first(), store_streamed(stream_)}});
            append(block, parts_->leave());
        } else if (!parts_) {
            append(block, store_streamed(stream_));
        }
        return block;
    }
    std::string element() const { return stream_.form.type.is_bfloat() ? "tw::bfloat16" : "tw::half"; }

    tile::Block turn(const char *function) const {
        return stream_.takes_turns ? tile::Block{invoke(function, {std::to_string(stream_.warpgroups)}, {})} : tile::Block{};
    }
    tile::Statement wait(const StreamedTile &tile, const Expr &step) const {
        return invoke("pipeline_wait", {stages()}, {buffer(tile.barriers()), scalar(work_.iteration(step))});
    }
    tile::Statement release(const StreamedTile &tile, const Expr &step) const {
        return invoke("stream_release", {stages()}, {buffer(tile.barriers()), scalar(work_.iteration(step))});
    }
    Expr slot(const Expr &step) const { return work_.iteration(step) % stream_.stages; }

    /// Scores of the step's keys, under way.
    tile::Block multiply_keys(const Expr &step) const {
        const int depth_steps = static_cast<int>(round_up(stream_.form.depth_extent.value(), 16) / 16);
        const Expr own_rows = tile::variable("thread.rank") / 128 * StreamingLaunch::chunk;
        return {invoke("multiply_keys", {element(), std::to_string(depth_steps), std::to_string(stream_.rows)},
                       {buffer("scores"), buffer("query_tile", {0, own_rows, 0}), buffer("key_tile", {slot(step), 0, 0, 0})}, {"scores"})};
    }
    /// The step's values, weighted, on their way into the sums.
    tile::Block add_values(const Expr &step) const {
        return {wait(stream_.value, step),
                invoke("multiply_values", {element()}, {buffer("sums"), buffer("weights"), buffer("value_tile", {slot(step), 0, 0, 0})},
                       {"sums"})};
    }
    /// What the step's scores read, into registers.
    tile::Block load_operands(const Expr &step) {
        tile::Block block;
        for (const StreamedTile &tile : scores_.tiles()) {
            block.push_back(wait(tile, step));
        }
        append(block, scores_.load_ahead(step, slot(step)));
        for (const StreamedTile &tile : scores_.tiles()) {
            block.push_back(release(tile, step));
        }
        return block;
    }
    /// From scores to weights: the score function, masks, the online softmax.
    tile::Block weigh() {
        tile::Block block = scores_.change();
        block.push_back(invoke("stream_softmax", {},
                               {buffer("scores"), buffer("maximum"), buffer("total"), buffer("decay"), scalar(stream_.exponent_scale())},
                               {"scores", "maximum", "total", "decay"}));
        return block;
    }
    tile::Statement pack() const { return invoke("pack_weights", {element()}, {buffer("weights"), buffer("scores")}, {"weights"}); }

    tile::Block first_step() {
        tile::Block block{wait(stream_.key, Expr(0))};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(Expr(0)));
        append(block, turn("turn_pass"));
        append(block, load_operands(Expr(0)));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        block.push_back(release(stream_.key, Expr(0)));
        append(block, weigh());
        block.push_back(pack());
        return {{tile::For{"start", 1, Level::loop, std::move(block)}}};
    }
    tile::Block later_step() {
        const Expr step = tile::variable("step"), next = tile::variable("next");
        tile::Block block{{tile::Let{"next", step + 1}}, wait(stream_.key, next)};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(next));
        append(block, add_values(step));
        append(block, turn("turn_pass"));
        append(block, load_operands(next));
        const auto wait_for_values = [&] {
            block.push_back(invoke("multiply_wait", {"0"}, {}));
            block.push_back(release(stream_.value, step));
        };
        block.push_back(invoke("multiply_wait", {"1"}, {}));
        block.push_back(release(stream_.key, next));
        if (stream_.hides_exponentials) {
            append(block, weigh());
            block.push_back(invoke("stream_overlap", {}, {buffer("total")}, {"total"}));
            wait_for_values();
        } else {
            wait_for_values();
            append(block, weigh());
        }
        block.push_back(invoke("rescale_sums", {}, {buffer("sums"), buffer("decay")}, {"sums"}));
        block.push_back(pack());
        return block;
    }

    StreamingLaunch &stream_;
    StreamedParts *parts_;
    StreamedWork work_;
    StreamedScores scores_;
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

std::vector<tile::Launch> lower_streaming(const Kernel &kernel, int stage, const ScheduledKernel &schedule, const GpuFacts &facts) {
    const auto form = match_streaming(kernel.algorithm, facts);
    const std::string &name = kernel.algorithm.stages[stage].name();
    if (!form || form->second != stage) {
        schedule_error(schedule.find(name)->find_flag("stream")->directive.location, name,
                       "its kernel is no pair of half-precision products joined by a softmax, with operands that the copy unit can fetch",
                       "remove stream, or compute the stages at the root");
    }
    Placement placement;
    placement.nest_of.assign(kernel.algorithm.stages.size(), -1);
    Storage storage(kernel.algorithm, placement);
    StreamingLaunch stream(kernel, *form, storage, schedule, facts);
    if (stream.parts == 1) {
        return {StreamingLowering(stream, nullptr).run()};
    }
    StreamedParts parts(stream);
    if (stream.in_cluster) {
        return {StreamingLowering(stream, &parts).run()};
    }
    StreamingLaunch merged(kernel, *form, storage, schedule, facts, StreamingLaunch::Role::merges);
    tile::Block merge = parts.merge(merged);
    append(merge, store_streamed(merged));
    merged.launch.body = StreamedWork(merged).alone(std::move(merge));
    return {StreamingLowering(stream, &parts).run(), std::move(merged.launch)};
}

}  // namespace tilewright
