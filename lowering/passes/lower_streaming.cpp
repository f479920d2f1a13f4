#include "lowering/passes/lower_streaming.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/nest.h"
#include "lowering/passes/operation.h"
#include "lowering/passes/possible_range.h"
#include "lowering/passes/storage.h"
#include "lowering/passes/streaming_form.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int chunk = 64;          // columns of a swizzled row of 128 bytes, and rows of a warpgroup
constexpr int group_columns = 32;  // of which a group of four lanes gathers 8 each

std::int64_t round_up(std::int64_t x, std::int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

tile::Invoke::Argument scalar(const Expr &e) { return {"", {}, e}; }
tile::Invoke::Argument buffer(const std::string &name, std::vector<Expr> indices = {}) { return {name, std::move(indices), Expr()}; }
tile::Statement invoke(const std::string &function, std::vector<std::string> templates, std::vector<tile::Invoke::Argument> arguments,
                       std::vector<std::string> writes = {}) {
    tile::Invoke call;
    call.function = function;
    call.template_arguments = std::move(templates);
    call.arguments = std::move(arguments);
    call.reads = call.writes = std::move(writes);
    return {call};
}
void append(tile::Block &block, tile::Block more) { block.insert(block.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end())); }

class StreamingLowering {
public:
    StreamingLowering(const Kernel &kernel, const StreamingForm &form, const Storage &storage, const ScheduledKernel &schedule, const GpuFacts &facts)
        : kernel_(kernel), algorithm_(kernel.algorithm), form_(form), storage_(storage), schedule_(schedule), facts_(facts),
          second_(algorithm_.stages[form.second]) {}

    tile::Launch run() {
        launch_.name = identifier(kernel_.name + "_" + second_.name());
        read_schedule();
        lay_out();
        find_range();
        split_masks();
        tile::Block &body = launch_.body;
        body.push_back({tile::Comment{"Full and empty barriers of the pipelines"}});
        body.push_back(invoke("pipeline_begin", {"1"}, {buffer("query_barriers"), scalar(Expr(warpgroups_))}));
        for (const char *barriers : {"key_barriers", "value_barriers"}) {
            body.push_back(invoke("pipeline_begin", {std::to_string(stages_)}, {buffer(barriers), scalar(Expr(warpgroups_))}));
        }
        append(body, place_of_block());
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        tile::Block producer = produce();
        producer.push_back({tile::Exit{}});
        body.push_back({tile::If{tile::variable("thread.rank") >= warpgroups_ * 128, std::move(producer)}});
        append(body, consume());
        return std::move(launch_);
    }

private:
    [[noreturn]] void refuse(const std::string &cause, const std::string &repair) const {
        schedule_error(scheduled().find_flag("stream")->directive.location, second_.name(), cause, repair);
    }
    const ScheduledStage &scheduled() const { return *schedule_.find(second_.name()); }
    const std::string &axis_name(int i) const { return form_.axes[i]; }

    // ---- How ----
    int number(const char *flag, int argument, int otherwise) const {
        const ScheduleFlag *found = scheduled().find_flag(flag);
        return found ? static_cast<int>(found->number(argument)) : otherwise;
    }
    void read_schedule() {
        warpgroups_ = number("warpgroups", 0, 2);
        stages_ = number("pipeline", 1, 2);
        raster_ = number("raster", 0, 1);
        blocks_per_multiprocessor_ = number("launch_bounds", 1, 1);
        takes_turns_ = scheduled().find_flag("take_turns") != nullptr && warpgroups_ > 1;
        columns_ = static_cast<int>(round_up(second_.extents[form_.column].value(), group_columns));
        depth_chunks_ = static_cast<int>(round_up(form_.depth_extent.value(), chunk) / chunk);
        column_chunks_ = static_cast<int>(round_up(columns_, chunk) / chunk);
        const int axis = scheduled().find_axis(scheduled().find_flag("stream")->word(0));
        const LoopAxis *streamed = axis >= 0 ? &scheduled().axes[axis] : nullptr;
        if (!streamed || streamed->origin != LoopAxis::Origin::split_outer || !streamed->reduction) {
            refuse("it streams along no outer part of its reduction", fmt::format("split {} and stream along the outer loop", form_.streamed));
        }
        tile_ = static_cast<int>(streamed->factor);
        rows_ = chunk * warpgroups_;
        if (tile_ % group_columns != 0 || tile_ > 256) {
            refuse(fmt::format("a step of {} is no width that the matrix unit has", tile_), "split by a multiple of 32 up to 256");
        }
        if (warpgroups_ < 1 || warpgroups_ > 3) {
            refuse(fmt::format("{} warpgroups do not share a block", warpgroups_), "give 1, 2 or 3");
        }
        const ScheduleFlag *unit = scheduled().find_flag("tensor_core");
        if (!unit || unit->number(0) != chunk || unit->number(1) != columns_ || unit->number(2) != 16) {
            refuse("it is not multiplied by the matrix unit", fmt::format("add tensor_core({}, {}, 16)", chunk, columns_));
        }
        const ScheduledStage *first = schedule_.find(algorithm_.stages[form_.first].name());
        const ScheduleFlag *first_unit = first->find_flag("tensor_core");
        if (!first_unit || first_unit->number(0) != chunk || first_unit->number(1) != tile_ || first_unit->number(2) != 16) {
            schedule_error(first->at_location, first->name, "it feeds a streamed product and is not multiplied by the matrix unit",
                           fmt::format("add compute_at({}, {}) and tensor_core({}, {}, 16)", second_.name(), streamed->name, chunk, tile_));
        }
    }

    // ---- What lies where ----
    void lay_out() {
        const Extent rows = second_.extents[form_.row];
        row_tiles_ = ceil_div(rows, rows_);
        key_tiles_ = ceil_div(form_.streamed_extent, tile_);
        for (int i = 0; i < static_cast<int>(form_.axes.size()); ++i) {
            tile::Axis axis{axis_name(i), second_.extents[i], {}};
            if (i == form_.row) {
                axis.leaves = {{"m_tile", row_tiles_, Level::loop, rows_, 1},
                               {"m_warpgroup", warpgroups_, Level::thread, chunk, 128},
                               {"m_warp", 4, Level::thread, 16, 32},
                               {"m_half", 2, Level::unroll, 8, 1},
                               {"m_row", 8, Level::thread, 1, 4}};
            } else if (i == form_.column) {
                axis.leaves = {{"n_group", columns_ / group_columns, Level::unroll, group_columns, 1},
                               {"n_block", 4, Level::thread, 8, 1},
                               {"n_lane", 8, Level::vector, 1, 1}};
            } else {
                axis.leaves = {{axis_name(i) + "_tile", axis.extent, Level::loop, 1, 1}};
                planes_ = planes_ * axis.extent;
                batch_.push_back(i);
            }
            launch_.axes.push_back(axis);
        }
        launch_.axes.push_back({form_.streamed, form_.streamed_extent,
                                {{"s_tile", key_tiles_, Level::loop, tile_, 1}, {"s_block", tile_ / 8, Level::unroll, 8, 1},
                                 {"s_pair", 4, Level::thread, 2, 1}, {"s_lane", 2, Level::vector, 1, 1}}});
        for (const auto &[name, range] : algorithm_.symbols) {
            ranges_[name] = range;
        }
        for (const tile::Axis &axis : launch_.axes) {
            ranges_[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(algorithm_.symbols).max - 1, 0)};
        }
        launch_.threads = (warpgroups_ + 1) * 128;
        launch_.blocks = row_tiles_ * planes_;
        launch_.min_blocks_per_multiprocessor = blocks_per_multiprocessor_;
        add_shared("query_tile", form_.type, {depth_chunks_, rows_, chunk});
        add_shared("key_tile", form_.type, {stages_, depth_chunks_, tile_, chunk});
        add_shared("value_tile", form_.type, {stages_, column_chunks_, tile_, chunk});
        add_shared("query_barriers", Halide::UInt(64), {2});
        add_shared("key_barriers", Halide::UInt(64), {2 * stages_});
        add_shared("value_barriers", Halide::UInt(64), {2 * stages_});
        add_map("query", form_.query, rows_);
        add_map("key", form_.key, tile_);
        add_map("value", form_.value, tile_);
        add_registers("scores", Halide::Float(32), {tile_ / 8, 2, 2});
        add_registers("weights", Halide::UInt(32), {tile_ / 16, 4});
        add_registers("sums", Halide::Float(32), {1, 1, columns_ / group_columns, 2, 8});
        for (const char *name : {"maximum", "total", "decay"}) {
            add_registers(name, Halide::Float(32), {2});
        }
    }
    void add_shared(const std::string &name, Halide::Type type, std::vector<Extent> extents) {
        tile::Buffer tile;
        tile.name = name;
        tile.types = {type};
        tile.memory = tile::Memory::shared;
        tile.strides = contiguous_strides(extents);
        tile.extents = std::move(extents);
        tile.alignment = type.bits() == 64 ? 8 : 1024;  // a swizzled atom
        tile.ordered = true;
        launch_.buffers.push_back(tile);
    }
    void add_registers(const std::string &name, Halide::Type type, std::vector<Extent> extents) {
        tile::Buffer registers;
        registers.name = name;
        registers.types = {type};
        registers.memory = tile::Memory::registers;
        registers.strides = contiguous_strides(extents);
        registers.extents = std::move(extents);
        launch_.buffers.push_back(registers);
    }
    /// Dimensions of the operand that the copy unit sees: the inner first, then the outer, then those that are constant in a block.
    std::vector<int> dimensions(const StreamedOperand &operand) const {
        const TensorMeta &meta = algorithm_.inputs[operand.input].meta;
        std::vector<int> result{operand.inner, operand.outer};
        for (int i = 0; i < static_cast<int>(operand.indices.size()); ++i) {
            if (i != operand.inner && i != operand.outer && !(meta.sizes[i] == Extent(1)) && !(meta.strides[i] == Extent(0))) {
                result.push_back(i);
            }
        }
        return result;
    }
    void add_map(const std::string &name, const StreamedOperand &operand, int box_rows) {
        const TensorMeta &meta = algorithm_.inputs[operand.input].meta;
        tile::Buffer map;
        map.name = name + "_map";
        map.types = {form_.type};
        map.memory = tile::Memory::descriptor;
        map.binding = tile::Buffer::Binding::input;
        map.index = operand.input;
        map.map.dtype = from_halide(form_.type);
        for (int d : dimensions(operand)) {
            map.map.sizes.push_back(meta.sizes[d]);
            if (d != operand.inner) {
                map.map.byte_strides.push_back(meta.strides[d] * Extent(form_.type.bytes()));
            }
            map.map.box.push_back(d == operand.inner ? chunk : d == operand.outer ? box_rows : 1);
        }
        map.map.swizzle_bytes = 128;
        launch_.buffers.push_back(map);
    }

    // ---- Expressions ----
    /// Reads of tensors and of what the block keeps, in place of reads of the algorithm's.
    class Bind : public hi::IRGraphMutator {
    public:
        explicit Bind(StreamingLowering &lowering) : lowering_(lowering) {}

    private:
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            if (!is_read(op)) {
                return hi::IRGraphMutator::visit(op);
            }
            return op->call_type == hi::Call::Image ? lowering_.read_tensor(op) : lowering_.read_kept(op);
        }
        StreamingLowering &lowering_;
    };
    Expr bound(const Expr &e) { return Bind(*this).mutate(e); }

    Expr read_tensor(const hi::Call *op) {
        if (const std::string *held = held_name(op)) {
            return kept(held->c_str(), {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")});
        }
        const tile::Buffer tensor = used(storage_.input(op->name));
        std::vector<Expr> indices;
        for (const Expr &index : op->args) {
            indices.push_back(simplify_index(substitute_variables(bound(index), clamped_), ranges_));
        }
        return tile::read(tensor, indices);
    }
    /// A tensor in global memory is a parameter of the launch; where the launch has a name already, the tensor's gives way.
    tile::Buffer used(tile::Buffer tensor) {
        for (const tile::Buffer *other = launch_.find_buffer(tensor.name); other; other = launch_.find_buffer(tensor.name)) {
            if (other->memory == tile::Memory::global && other->binding == tensor.binding && other->index == tensor.index) {
                return tensor;
            }
            tensor.name += "_";
        }
        launch_.buffers.push_back(tensor);
        return tensor;
    }
    Expr kept(const char *name, std::vector<Expr> indices) const { return tile::read(*launch_.find_buffer(name), indices); }
    Expr read_kept(const hi::Call *op) const {
        const Expr half = tile::variable("m_half");
        const int stage = stage_index(algorithm_, op->name);
        if (stage == form_.first) {
            return kept("scores", {tile::variable("s_block"), half, tile::variable("s_lane")});
        }
        if (stage == form_.second) {
            return kept("sums", {0, 0, tile::variable("n_group"), half, tile::variable("n_lane")});
        }
        if (stage == form_.maximum) {
            const Expr maximum = kept("maximum", {half});
            return form_.scale == 1 ? maximum : maximum * static_cast<float>(form_.scale);
        }
        return kept("total", {half});
    }

    // ---- The block's place, and the tiles that it visits ----
    /// Groups of raster_ planes side by side: their blocks share keys and values in the L2 cache, the longest first.
    tile::Block place_of_block() const {
        tile::Block block;
        const auto let = [&](const std::string &name, const Expr &value) { block.push_back({tile::Let{name, value}}); };
        const Expr in_stripe = tile::variable("place_in_stripe"), stripe = tile::variable("block_stripe"), width = tile::variable("stripe_planes");
        const Expr per_stripe = to_halide(row_tiles_) * raster_;
        let("block_stripe", tile::variable("block.rank") / per_stripe * raster_);
        let("place_in_stripe", tile::variable("block.rank") % per_stripe);
        let("stripe_planes", Halide::min(to_halide(planes_) - stripe, raster_));
        const Expr row = in_stripe / width;
        let("m_tile", range_.last.defined() ? to_halide(row_tiles_) - 1 - row : row);
        let("block_plane", stripe + in_stripe % width);
        Expr plane = tile::variable("block_plane");
        for (auto i = batch_.rbegin(); i != batch_.rend(); ++i) {
            const Expr extent = to_halide(second_.extents[*i]);
            let(axis_name(*i) + "_tile", i + 1 == batch_.rend() ? plane : plane % extent);
            plane = plane / extent;
        }
        let("first_tile", first_tile_);
        let("tile_count", tile_count_);
        return block;
    }

    std::map<std::string, ExprInterval> rows_between(const Expr &first, int count) const {
        const Expr last = Halide::min(first + (count - 1), to_halide(second_.extents[form_.row]) - 1);
        return {{axis_name(form_.row), {first, last}}};
    }
    void find_range() {
        const Expr streamed = tile::variable(form_.streamed), extent = to_halide(form_.streamed_extent);
        masks_ = form_.masks;
        const bool exact = mod(form_.streamed_extent, tile_) == Extent(0);
        Expr any;
        for (const Expr &mask : masks_) {
            any = any.defined() ? any && mask : mask;
        }
        const Expr row = tile::variable("m_tile") * rows_;
        range_ = any.defined() ? possible_range(any, form_.streamed, rows_between(row, rows_)) : PossibleRange{};
        if (!exact) {
            masks_.push_back(streamed < extent);
        }
        const auto narrow = [&](const Expr &e) { return Halide::cast<int>(Halide::clamp(e, Halide::cast<std::int64_t>(0), Halide::cast<std::int64_t>(extent) - 1)); };
        first_tile_ = range_.first.defined() ? bound(narrow(range_.first)) / tile_ : Expr(0);
        const Expr end = range_.last.defined() ? bound(narrow(range_.last)) / tile_ + 1 : to_halide(key_tiles_);
        tile_count_ = range_.is_bounded() ? Halide::max(end - tile::variable("first_tile"), 1) : end;
    }

    // ---- The producer ----
    tile::Block fetch(const std::string &name, const StreamedOperand &operand, int chunks, int stages, const Expr &iteration, const Expr &first_row) {
        const bool staged = name != "query";
        const std::vector<int> order = dimensions(operand);
        tile::Block block;
        for (int c = 0; c < chunks; ++c) {
            std::vector<Expr> place{Expr(c), Expr(0), Expr(0)};
            if (staged) {
                place.insert(place.begin(), tile::variable("slot"));
            }
            std::vector<tile::Invoke::Argument> arguments{buffer(name + "_tile", place), buffer(name + "_map"), buffer(name + "_barriers"), scalar(iteration)};
            for (int d : order) {
                arguments.push_back(scalar(d == operand.inner ? Expr(c * chunk) : d == operand.outer ? first_row : bound(operand.indices[d])));
            }
            block.push_back(invoke("bulk_load", {std::to_string(stages), std::to_string(order.size())}, arguments));
        }
        return block;
    }
    /// Tiles are visited from the last to the first: of a causal mask, those that need it come while nothing overlaps yet.
    static Expr tile_at(const Expr &iteration) { return tile::variable("first_tile") + (tile::variable("tile_count") - 1 - iteration); }

    tile::Block produce() {
        const int bytes = form_.type.bytes() * chunk;
        const Expr iteration = tile::variable("iteration");
        tile::Block work{invoke("pipeline_acquire", {"1"}, {buffer("query_barriers"), scalar(Expr(0)), scalar(Expr(depth_chunks_ * rows_ * bytes))})};
        append(work, fetch("query", form_.query, depth_chunks_, 1, Expr(0), tile::variable("m_tile") * rows_));
        tile::Block step{{tile::Let{"slot", iteration % stages_}}, {tile::Let{"first_key", tile_at(iteration) * tile_}}};
        const auto copy = [&](const std::string &name, const StreamedOperand &operand, int chunks) {
            step.push_back(invoke("pipeline_acquire", {std::to_string(stages_)},
                                  {buffer(name + "_barriers"), scalar(iteration), scalar(Expr(chunks * tile_ * bytes))}));
            append(step, fetch(name, operand, chunks, stages_, iteration, tile::variable("first_key")));
        };
        copy("key", form_.key, depth_chunks_);
        copy("value", form_.value, column_chunks_);
        append(work, {{tile::For{"iteration", tile_count_loop(), Level::loop, std::move(step)}}});
        return {invoke("registers_decrease", {"24"}, {}), tile::Statement{tile::If{tile::variable("thread.rank") == warpgroups_ * 128, std::move(work)}}};
    }
    /// The loop's extent is a value of the block; the tile IR spells extents as symbols.
    static Extent tile_count_loop() { return Extent::symbol("tile_count"); }

    // ---- Consumers ----
    tile::Block consume() {
        tile::Block block{invoke("registers_increase", {std::to_string(consumer_registers())}, {}),
                          invoke("stream_begin", {}, {buffer("sums"), buffer("maximum"), buffer("total")}, {"sums", "maximum", "total"})};
        const std::string turns = std::to_string(warpgroups_);
        if (takes_turns_) {
            block.push_back(invoke("turns_begin", {turns}, {}));
        }
        block.push_back(invoke("pipeline_wait", {"1"}, {buffer("query_barriers"), scalar(Expr(0))}));
        append(block, first_step());
        append(block, {{tile::For{"step", tile_count_loop() + Extent(-1), Level::loop, later_step()}}});
        block.push_back({tile::Let{"last_step", tile::variable("tile_count") - 1}});
        append(block, add_values(tile::variable("last_step")));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        if (takes_turns_) {
            block.push_back(invoke("turns_end", {turns}, {}));
        }
        block.push_back(invoke("stream_end", {}, {buffer("sums"), buffer("total")}, {"sums", "total"}));
        append(block, finish());
        return block;
    }
    int consumer_registers() const {
        const int at_launch = std::min(facts_.registers_per_multiprocessor / (launch_.threads * blocks_per_multiprocessor_) / 8 * 8, 248);
        return std::min((at_launch * (warpgroups_ + 1) - 24) / warpgroups_ / 8 * 8, 240);
    }
    std::string element() const { return form_.type.is_bfloat() ? "tw::bfloat16" : "tw::half"; }

    tile::Block turn(const char *function) const {
        return takes_turns_ ? tile::Block{invoke(function, {std::to_string(warpgroups_)}, {})} : tile::Block{};
    }
    /// Scores of the iteration's keys, under way.
    tile::Block multiply_keys(const Expr &iteration) const {
        const int steps = static_cast<int>(round_up(form_.depth_extent.value(), 16) / 16);
        const Expr own_rows = tile::variable("thread.rank") / 128 * chunk;
        return {invoke("multiply_keys", {element(), std::to_string(steps), std::to_string(rows_)},
                       {buffer("scores"), buffer("query_tile", {0, own_rows, 0}), buffer("key_tile", {iteration % stages_, 0, 0, 0})}, {"scores"})};
    }
    /// The iteration's values, weighted, on their way into the sums.
    tile::Block add_values(const Expr &iteration) const {
        return {invoke("pipeline_wait", {std::to_string(stages_)}, {buffer("value_barriers"), scalar(iteration)}),
                invoke("multiply_values", {element()}, {buffer("sums"), buffer("weights"), buffer("value_tile", {iteration % stages_, 0, 0, 0})}, {"sums"})};
    }
    tile::Statement release(const char *barriers, const Expr &iteration) const {
        return invoke("stream_release", {std::to_string(stages_)}, {buffer(barriers), scalar(iteration)});
    }
    /// From scores to weights: the score function, masks, the online softmax.
    tile::Block weigh() {
        tile::Block block = change_scores();
        block.push_back(invoke("stream_softmax", {},
                               {buffer("scores"), buffer("maximum"), buffer("total"), buffer("decay"),
                                scalar(Expr(static_cast<float>(form_.scale * 1.4426950408889634)))},
                               {"scores", "maximum", "total", "decay"}));
        return block;
    }
    tile::Statement pack() const { return invoke("pack_weights", {element()}, {buffer("weights"), buffer("scores")}, {"weights"}); }

    tile::Block first_step() {
        tile::Block block{invoke("pipeline_wait", {std::to_string(stages_)}, {buffer("key_barriers"), scalar(Expr(0))})};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(Expr(0)));
        append(block, turn("turn_pass"));
        append(block, load_ahead(Expr(0)));
        block.push_back(invoke("multiply_wait", {"0"}, {}));
        block.push_back(release("key_barriers", Expr(0)));
        append(block, weigh());
        block.push_back(pack());
        return {{tile::For{"start", 1, Level::loop, std::move(block)}}};
    }
    tile::Block later_step() {
        const Expr step = tile::variable("step"), next = tile::variable("next");
        tile::Block block{{tile::Let{"next", step + 1}}, invoke("pipeline_wait", {std::to_string(stages_)}, {buffer("key_barriers"), scalar(next)})};
        append(block, turn("turn_wait"));
        append(block, multiply_keys(next));
        append(block, add_values(step));
        append(block, turn("turn_pass"));
        append(block, load_ahead(next));
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

    // ---- The score function ----
    static tile::Block over_scores(tile::Block body) {
        body = {{tile::For{"s_lane", 2, Level::vector, std::move(body)}}};
        body = {{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
        return body;
    }
    tile::Block score_loop(tile::Block body) const { return {{tile::For{"s_block", tile_ / 8, Level::unroll, over_scores(std::move(body))}}}; }
    tile::Statement store_score(const Expr &value) const {
        return {tile::Store{"scores", {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")}, {value}}};
    }
    Expr old_score() const { return kept("scores", {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")}); }
    static Expr negative_infinity() { return Expr(-std::numeric_limits<float>::infinity()); }

    /// Whether every place of the warpgroup's rows and the tile's columns passes the mask; undefined where that is not known.
    Expr passes_everywhere(const Expr &mask) {
        const Expr row = tile::variable("m_tile") * rows_ + tile::variable("m_warpgroup") * chunk;
        const PossibleRange fails = possible_range(!mask, form_.streamed, rows_between(row, chunk));
        const Expr first = Halide::cast<std::int64_t>(tile::variable("s_tile") * tile_), last = first + Halide::cast<std::int64_t>(tile_ - 1);
        Expr passes;
        if (fails.first.defined()) {
            passes = last < bound(fails.first);
        }
        if (fails.last.defined()) {
            passes = passes.defined() ? passes || first > bound(fails.last) : first > bound(fails.last);
        }
        return passes;
    }

    /// Comparisons of places in 64 bits, as PyTorch's indices have them, in 32 where they fit.
    class Narrow : public hi::IRGraphMutator {
    public:
        explicit Narrow(const VariableRanges &ranges) : ranges_(ranges) {}

    private:
        using hi::IRGraphMutator::visit;
        template<typename Node> Expr compare(const Node *op) {
            const Expr a = op->a.type() == Halide::Int(64) ? narrow(op->a) : Expr(), b = a.defined() ? narrow(op->b) : Expr();
            return a.defined() && b.defined() ? Node::make(a, b) : hi::IRGraphMutator::visit(op);
        }
        Expr visit(const hi::LT *op) override { return compare(op); }
        Expr visit(const hi::LE *op) override { return compare(op); }
        Expr visit(const hi::GT *op) override { return compare(op); }
        Expr visit(const hi::GE *op) override { return compare(op); }
        Expr visit(const hi::EQ *op) override { return compare(op); }
        Expr visit(const hi::NE *op) override { return compare(op); }

        Expr narrow(const Expr &e) const {
            const Operation op = operation_of(e);
            Expr result;
            if (const auto *constant = e.as<hi::IntImm>()) {
                return std::abs(constant->value) < (1 << 30) ? Expr(static_cast<int>(constant->value)) : Expr();
            }
            if (op.name == "convert") {
                return op.operands[0].type() == Halide::Int(32) ? op.operands[0] : Expr();
            }
            if (op.name == "add" || op.name == "sub") {
                const Expr a = narrow(op.operands[0]), b = narrow(op.operands[1]);
                if (a.defined() && b.defined()) {
                    result = op.name == "add" ? a + b : a - b;
                }
            }
            const auto range = result.defined() ? range_of(result, ranges_) : std::nullopt;
            return range && range->min > -(1LL << 31) && range->max < (1LL << 31) ? result : Expr();
        }
        const VariableRanges &ranges_;
    };

    /// Masks of places are applied where a step needs them; others, and what the score function computes, at every place.
    void split_masks() {
        changed_ = form_.score;
        for (const Expr &mask : masks_) {
            if (passes_everywhere(mask).defined()) {
                masks_by_range_.push_back(mask);
            } else {
                changed_ = Halide::select(mask, changed_, negative_infinity());
            }
        }
        const auto *call = changed_.as<hi::Call>();
        changes_ = !(call && call->name == algorithm_.stages[form_.first].name());
        find_held();
    }
    tile::Block change_scores() {
        tile::Block block;
        if (changes_) {
            append(block, at_every_place(changed_, [&] { return store_score(bound(changed_)); }));
        }
        if (!masks_by_range_.empty()) {
            Expr mask, pass;
            for (const Expr &m : masks_by_range_) {
                const Expr narrow = Narrow(ranges_).mutate(bound(m)), passes = passes_everywhere(m);
                mask = mask.defined() ? mask && narrow : narrow;
                pass = pass.defined() ? pass && passes : passes;
            }
            block.push_back({tile::If{!pass, score_loop({store_score(Halide::select(mask, old_score(), negative_infinity()))})}});
        }
        return block;
    }
    /// Tensors are read at places inside of them only: where the last rows or columns of the tile lie outside, at the nearest.
    template<typename Statement> tile::Block at_every_place(const Expr &value, Statement statement) {
        const std::string &row = axis_name(form_.row);
        const bool reads_rows = reads_unheld_along(value, row), reads_columns = reads_unheld_along(value, form_.streamed);
        if (reads_rows && !(mod(second_.extents[form_.row], rows_) == Extent(0))) {
            clamped_[row] = nearest(row, second_.extents[form_.row]);
        }
        const bool tail = reads_columns && !(mod(form_.streamed_extent, tile_) == Extent(0));
        const Expr is_inside = (tile::variable("s_tile") + 1) * tile_ <= to_halide(form_.streamed_extent);
        tile::Block inside = score_loop({statement()});
        if (!tail) {
            clamped_.clear();
            return inside;
        }
        clamped_[form_.streamed] = nearest(form_.streamed, form_.streamed_extent);
        tile::Block last = score_loop({statement()});
        clamped_.clear();
        return {{tile::If{is_inside, std::move(inside)}}, {tile::If{!is_inside, std::move(last)}}};
    }

    // ---- Tensors that the score function reads ----
    /// Those that vary along the streamed axis are loaded while products are under way, as many as the registers have room for.
    void find_held() {
        if (!changes_) {
            return;
        }
        constexpr int bookkeeping = 44;  // addresses, loop counters, row statistics
        int room = consumer_registers() - columns_ / 2 - tile_ / 2 - tile_ / 4 - bookkeeping;
        std::vector<Expr> reads;
        visit_reads(changed_, [&](const hi::Call *call) {
            if (call->call_type == hi::Call::Image && reads_along(call, form_.streamed)) {
                reads.emplace_back(call);
            }
        });
        for (const Expr &read : reads) {
            const int registers = tile_ / 2 * std::max(read.type().bits(), 16) / 32;
            if (registers <= room) {
                room -= registers;
                const std::string name = fmt::format("ahead_{}", held_.size());
                add_registers(name, read.type(), {tile_ / 8, 2, 2});
                held_.emplace_back(read, name);
            }
        }
    }
    const std::string *held_name(const hi::Call *call) const {
        const auto found = std::find_if(held_.begin(), held_.end(), [&](const auto &held) { return hi::graph_equal(held.first, Expr(call)); });
        return found == held_.end() || loading_ ? nullptr : &found->second;
    }
    tile::Block load_ahead(const Expr &iteration) {
        tile::Block block{{tile::Let{"s_tile", tile_at(iteration)}}};
        loading_ = true;
        for (const auto &[read, name] : held_) {
            append(block, at_every_place(read, [&, &name = name, &read = read]() -> tile::Statement {
                return {tile::Store{name, {tile::variable("s_block"), tile::variable("m_half"), tile::variable("s_lane")}, {bound(read)}}};
            }));
        }
        loading_ = false;
        return block;
    }
    /// A primitive: simplification takes every axis to be inside its extent.
    static Expr nearest(const std::string &axis, const Extent &extent) { return math::call(Halide::Int(32), "minimum", {tile::variable(axis), to_halide(extent) - 1}); }
    static bool reads_along(const hi::Call *call, const std::string &axis) {
        return std::any_of(call->args.begin(), call->args.end(), [&](const Expr &index) { return mentions(index, axis); });
    }
    bool reads_unheld_along(const Expr &e, const std::string &axis) const {
        bool found = false;
        visit_reads(e, [&](const hi::Call *call) { found = found || (call->call_type == hi::Call::Image && !held_name(call) && reads_along(call, axis)); });
        return found;
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
        if (form_.row_factor.defined()) {
            const Expr sum = kept("sums", {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")});
            tile::Store scaled{"sums", {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")}, {sum * bound(form_.row_factor)}};
            append(block, over_sums({{scaled}}));
        }
        tile::Block wide, narrow;
        for (int output : form_.outputs) {
            const Stage &stage = algorithm_.stages[output];
            const std::map<std::string, Expr> places = places_on_axes(stage, form_.axes);
            std::vector<Expr> indices;
            for (const std::string &argument : stage.func.function().args()) {
                indices.push_back(places.at(argument));
            }
            const hi::Function function = stage.func.function();
            Expr value = function.has_update_definition() ? Expr(hi::Call::make(function, indices, 0))
                                                          : expand_stages(algorithm_, function.definition().values()[0], places);
            const bool along_columns = static_cast<int>(indices.size()) > form_.column && mentions(indices[form_.column], axis_name(form_.column));
            for (const tile::Buffer &target : storage_.targets(output, 0)) {
                const bool rounds = along_columns && target.types[0].bits() == 16;
                const Expr stored = rounds ? Reciprocals(axis_name(form_.column)).mutate(value) : value;
                (along_columns ? wide : narrow).push_back({tile::Store{used(target).name, indices, {bound(stored)}}});
            }
        }
        if (!wide.empty()) {
            append(block, over_sums(guarded(form_.column, guarded(form_.row, std::move(wide)))));
        }
        if (!narrow.empty()) {
            tile::Block rows{{tile::For{"m_half", 2, Level::unroll, guarded(form_.row, std::move(narrow))}}};
            block.push_back({tile::If{tile::variable("thread.rank") % 4 == 0, std::move(rows)}});
        }
        return block;
    }
    tile::Block over_sums(tile::Block body) const {
        body = {{tile::For{"n_lane", 8, Level::vector, std::move(body)}}};
        body = {{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
        return {{tile::For{"n_group", columns_ / group_columns, Level::unroll, std::move(body)}}};
    }
    tile::Block guarded(int axis, tile::Block body) const {
        if (!launch_.axes[axis].exact()) {
            body = {{tile::If{tile::variable(axis_name(axis)) < to_halide(second_.extents[axis]), std::move(body)}}};
        }
        return body;
    }

    const Kernel &kernel_;
    const Algorithm &algorithm_;
    const StreamingForm &form_;
    const Storage &storage_;
    const ScheduledKernel &schedule_;
    const GpuFacts &facts_;
    const Stage &second_;
    tile::Launch launch_;
    VariableRanges ranges_;
    Substitution clamped_;                 ///< what axes are replaced by in places of tensors
    std::vector<Expr> masks_, masks_by_range_;
    Expr changed_;                         ///< the score function, with masks that no range tells
    bool changes_ = false;                 ///< it is more than the product itself
    std::vector<std::pair<Expr, std::string>> held_;  ///< reads of tensors, and the registers that hold them
    bool loading_ = false;                 ///< reads are those of memory, not of the registers
    std::vector<int> batch_;               ///< axes that are constant in a block
    PossibleRange range_;                  ///< of the streamed axis, for the block's rows
    Expr first_tile_, tile_count_;
    Extent row_tiles_, key_tiles_, planes_ = 1;
    int warpgroups_ = 2, stages_ = 2, raster_ = 1, blocks_per_multiprocessor_ = 1;
    int tile_ = 0, rows_ = 0, columns_ = 0, depth_chunks_ = 1, column_chunks_ = 1;
    bool takes_turns_ = false;
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
    return StreamingLowering(kernel, *form, storage, schedule, facts).run();
}

}  // namespace tilewright
