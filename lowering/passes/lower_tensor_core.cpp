#include "lowering/passes/lower_tensor_core.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/passes/computed_operand.h"
#include "lowering/passes/finish_product.h"
#include "lowering/passes/invoke.h"
#include "lowering/passes/matrix_epilogue.h"
#include "lowering/passes/matrix_operands.h"
#include "lowering/passes/stage_values.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {

constexpr int depth = 64;           // elements of a tile along K: 128 bytes, one swizzled row
constexpr int chunk = 64;           // rows of a warpgroup's multiply, and columns of a transposed chunk
constexpr int warpgroup = 128;      // threads
constexpr int largest_width = 256;
constexpr const char *single_axis = "single";
constexpr int most_sums = 256;      // registers of a thread that hold sums

/// Columns that one instruction multiplies (device/multiply.h).
bool is_unit_width(int columns) {
    static const std::vector<int> widths = {8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256};
    return std::find(widths.begin(), widths.end(), columns) != widths.end();
}

/// The same with the left operand in registers.
bool is_register_width(int columns) {
    static const std::vector<int> widths = {8, 16, 32, 48, 64, 96, 128, 192, 256};
    return std::find(widths.begin(), widths.end(), columns) != widths.end();
}

class TensorCoreLowering {
public:
    TensorCoreLowering(const Kernel &kernel, const Placement &placement, int index, std::vector<int> products, Storage &storage,
                       const ScheduledKernel &schedule, const GpuFacts &facts)
        : kernel_(kernel), placement_(placement), nest_(placement.nests[index]), products_(std::move(products)), storage_(storage), facts_(facts),
          stage_(kernel.algorithm.stages[products_.front()]), all_schedules_(schedule), schedule_(*schedule.find(stage_.name())), values_(kernel, nest_, placement, storage, launch_) {}

    std::vector<tile::Launch> run() {
        launch_.name = identifier(kernel_.name + "_" + stage_.name());
        add_single_axis();
        operands_ = find_matrix_operands(kernel_, nest_, products_, schedule_.find_flag("tensor_core")->number(1), values_, launch_,
                                         [this](const std::string &cause, const std::string &repair) { refuse(cause, repair); });
        std::erase(operands_.batch, single_axis);
        read_schedule();
        keep_sums();
        const std::vector<MatrixResult> stored = results();
        const auto note_reads = [&](const Expr &value) { visit_reads(value, [&](const Halide::Internal::Call *call) { other_reads_.insert(call->name); }); };
        for (const MatrixResult &result : stored) {
            note_reads(result.value);
        }
        if (operands_.left.value.defined()) {
            note_reads(without_fetched(operands_.left));
        }
        MatrixEpilogue epilogue(nest_, launch_, values_, stored);
        epilogue.choose(shape_, free_bytes());
        lay_out();
        epilogue.declare(shape_);
        launch_.axes = nest_.axes;
        launch_.body = {tile::Statement{tile::Comment{"Slots of the pipeline: full and empty barriers"}}};
        launch_.body.push_back(invoke("pipeline_begin", {std::to_string(stages_)}, {buffer("barriers"), scalar(Expr(turns_ > 1 ? 1 : shape_.warpgroups))}));
        if (right_stays_) {
            launch_.body.push_back(invoke("pipeline_begin", {"1"}, {buffer("right_barriers"), scalar(Expr(shape_.warpgroups))}));
        }
        if (turns_ > 1) {
            launch_.body.push_back(invoke("pipeline_begin", {number(turns_)}, {buffer("turns"), scalar(Expr(1))}));
        }
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        tile::Block producer = produce(), consumers = consume(epilogue);
        producer.push_back({tile::Exit{}});
        launch_.body.push_back({tile::If{tile::variable("thread.rank") >= shape_.warpgroups * warpgroup, std::move(producer)}});
        launch_.body.insert(launch_.body.end(), consumers.begin(), consumers.end());
        std::vector<tile::Launch> launches{std::move(launch_)};
        if (leaves_partials()) {
            launches.push_back(finish_product(kernel_, placement_, nest_, products_, partials_, shape_.columns == single_axis ? shape_.rows : shape_.columns, storage_));
        }
        return launches;
    }

private:
    [[noreturn]] void refuse(const std::string &cause, const std::string &repair) const {
        const ScheduleFlag *flag = schedule_.find_flag("tensor_core");
        schedule_error(flag->directive.location, stage_.name(), cause, repair);
    }
    std::string number(int i) const { return std::to_string(i); }
    std::string sums_name(std::size_t product) const { return product == 0 ? "sums" : fmt::format("sums_{}", product + 1); }

    /// A product of one row may stand over no axis for it: this one does, unless another axis of one place is found first.
    void add_single_axis() {
        tile::Axis single;
        single.name = single_axis;
        nest_.axes.insert(nest_.axes.begin(), single);
        nest_.ranges[single_axis] = {0, 0};
    }

    // ---- How ----
    void read_schedule() {
        MatrixOperand &left = operands_.left;
        left.tile = static_cast<int>(tile_extent(nest_, left.rows));
        const ScheduleFlag *groups = schedule_.find_flag("warpgroups"), *pipeline = schedule_.find_flag("pipeline"), *unit = schedule_.find_flag("tensor_core"),
                           *raster = schedule_.find_flag("raster"), *split = schedule_.find_flag("split_blocks"), *cluster = schedule_.find_flag("cluster");
        shape_.rows = left.rows;
        shape_.columns = operands_.right.front().rows;
        shape_.batch = operands_.batch;
        shape_.width = static_cast<int>(nest_.find_axis(shape_.columns)->extent == Extent(1) ? unit->number(1) : tile_extent(nest_, shape_.columns));
        shape_.warpgroups = groups ? static_cast<int>(groups->number(0)) : 2;
        parts_ = split ? static_cast<int>(split->number(1)) : 1;
        shape_.parts = cluster ? static_cast<int>(cluster->number(0) * cluster->number(1)) : 1;
        stages_ = pipeline ? static_cast<int>(pipeline->number(1)) : 4;
        raster_ = raster ? static_cast<int>(raster->number(0)) : 8;
        persistent_ = schedule_.find_flag("persistent") != nullptr;
        for (MatrixOperand &right : operands_.right) {
            right.tile = shape_.width;
        }
        if (unit->number(0) != chunk || unit->number(2) != 16) {
            refuse("the unit of Hopper multiplies 64 rows, 16 deep", fmt::format("write tensor_core(64, {}, 16)", shape_.width));
        }
        if (left.value.defined() && (products_.size() > 1 || !is_register_width(shape_.width))) {
            refuse("its left operand is computed in registers", "make the tile 8, 16, 32, 48, 64, 96, 128, 192 or 256 wide, for one product");
        }
        if (!is_unit_width(shape_.width) || unit->number(1) != shape_.width) {
            refuse(fmt::format("its tiles are {} wide", shape_.width),
                   "split the output's columns by 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224 or 256, and give tensor_core the same number");
        }
        if (operands_.right.front().transposed && shape_.width % chunk != 0) {
            refuse("an operand that runs along the columns is fetched 64 columns at a time", "make the tile's width a multiple of 64");
        }
        if (left.tile <= 0 || shape_.warpgroups < 1 || shape_.warpgroups > 3 || left.tile % (chunk * shape_.warpgroups) != 0) {
            refuse(fmt::format("tiles {} high do not divide among {} warpgroups of 64 rows", left.tile, shape_.warpgroups),
                   "split the output's rows by 64 times warpgroups, or a multiple");
        }
        if (operands_.turned && left.tile > chunk * shape_.warpgroups) {
            refuse(fmt::format("{} of the output's columns are the rows of {} warpgroups", left.tile, shape_.warpgroups), "split those columns by 64 times warpgroups");
        }
        if (left.tile > largest_width) {
            refuse("a tile is at most 256 high", "split the output's rows by 256 or less");
        }
        shape_.chunks = left.tile / (chunk * shape_.warpgroups);
        const int sums = shape_.chunks * shape_.width / 2 * static_cast<int>(products_.size());
        if (sums > most_sums) {
            refuse(fmt::format("each thread would hold {} sums", sums), "make the tile smaller or add warpgroups");
        }
        check_parts();
        if (schedule_.find_flag("take_turns")) {
            if (!persistent_ || left.value.defined()) {
                refuse("warpgroups take turns at tiles of persistent blocks whose operands the copy unit brings", "add persistent(), or remove take_turns()");
            }
            turns_ = shape_.warpgroups;
        }
        check_copies();
    }
    /// X.in(product), staged where the tiles begin: all of its terms come once.
    void check_copies() {
        const MatrixOperand &right = operands_.right.front();
        for (const ScheduledStage &copy : all_schedules_.stages) {
            if (copy.copy_of.empty() || !copy.is_edited) {
                continue;
            }
            const auto give_up = [&](const std::string &cause, const std::string &repair) { schedule_error(copy.at_location, copy.name, cause, repair); };
            if (copy.copy_for != stage_.name() || !kernel_.algorithm.find_input(copy.copy_of) || storage_.input(copy.copy_of).name != right.read.buffer.name || operands_.right.size() > 1) {
                give_up("it is not the one right operand of the product on the matrix unit", "remove it: the pipeline brings it");
            }
            const bool at_tiles = copy.compute == ComputeLevel::at && copy.store_in == MemorySpace::shared && copy.at_stage != stage_.name();
            if (!at_tiles || !persistent_) {
                give_up("all terms of an operand are staged where persistent blocks begin their tiles", "add compute_at(output, axis) and store_in(shared), or remove it");
            }
            const bool one_tile = ceil_div(nest_.find_axis(shape_.columns)->extent, shape_.width) == Extent(1);
            const bool varies = std::any_of(shape_.batch.begin(), shape_.batch.end(), [&](const std::string &b) { return right.read.strides.count(b) > 0; });
            if (!one_tile || varies || !k_steps_.is_constant()) {
                give_up("it is not the same for all tiles", "remove it: the pipeline brings it");
            }
            right_stays_ = true;
            if (free_bytes() < 0) {
                give_up(fmt::format("its {} bytes do not fit in shared memory beside the pipeline", staying_bytes()), "give pipeline fewer stages, or remove it");
            }
        }
    }
    std::int64_t staying_bytes() const { return k_steps_.value() * shape_.width * depth * operands_.type.bytes(); }
    bool is_tap(const std::string &axis) const { return std::find(operands_.taps.begin(), operands_.taps.end(), axis) != operands_.taps.end(); }
    void check_parts() {
        k_steps_ = ceil_div(nest_.find_axis(operands_.k)->extent, depth);
        for (const std::string &name : operands_.taps) {
            k_steps_ = k_steps_ * nest_.find_axis(name)->extent;
        }
        if (shape_.parts > 1 && shape_.parts != parts_) {
            refuse("a cluster's blocks share the terms of one tile", fmt::format("write split_blocks and cluster({}, 1) together", parts_));
        }
        if (parts_ == 1) {
            return;
        }
        if (persistent_) {
            refuse("blocks that share a product's terms take one tile each", "remove persistent() or split_blocks");
        }
        if (shape_.parts > facts_.largest_cluster || shape_.width % (shape_.parts * 8) != 0) {
            refuse(fmt::format("{} blocks of a cluster cannot each finish a share of {} columns", shape_.parts, shape_.width),
                   fmt::format("split the terms among at most {} blocks, a power of two", std::min(facts_.largest_cluster, shape_.width / 8)));
        }
        k_steps_ = ceil_div(k_steps_, parts_);
    }
    /// Blocks that share terms and are no cluster leave their sums to a second pass.
    bool leaves_partials() const { return parts_ > 1 && shape_.parts == 1; }
    std::int64_t slot_bytes() const {
        const int right = right_stays_ ? 0 : shape_.width * static_cast<int>(operands_.right.size());
        return static_cast<std::int64_t>(slot_rows(operands_.left) * operands_.left.read.type.bytes() + right * operands_.type.bytes()) * depth;
    }
    /// Of an operand's tile, in a slot of the pipeline.
    int slot_rows(const MatrixOperand &operand) const { return &operand == &operands_.left ? operand.tile / turns_ : operand.tile; }
    std::int64_t free_bytes() const {
        return facts_.shared_per_block - slot_bytes() * stages_ - (right_stays_ ? staying_bytes() : 0) - 2 * 8 * (stages_ + 1 + turns_) - 1024;
    }

    // ---- Values ----
    /// From now on the products are read from registers.
    void keep_sums() {
        const std::vector<Expr> place{tile::variable("m_chunk"), tile::variable("n_strip"), tile::variable("n_block"), tile::variable("m_half"),
                                      tile::variable("n_lane")};
        for (std::size_t i = 0; i < products_.size(); ++i) {
            values_.keep(products_[i], sums_buffer(shape_.parts > 1 ? "whole_" + sums_name(i) : sums_name(i)), place);
        }
    }
    tile::Buffer sums_buffer(const std::string &name) const {
        tile::Buffer sums;
        sums.name = name;
        sums.types = {Halide::Float(32)};
        sums.memory = tile::Memory::registers;
        sums.extents = {shape_.chunks, 1, 1, 2, 2};
        sums.strides = contiguous_strides(sums.extents);
        return sums;
    }
    /// Every stage that is stored, at the places that a thread holds sums of.
    std::vector<MatrixResult> results() {
        std::vector<MatrixResult> results;
        for (std::size_t i = 0; leaves_partials() && i < products_.size(); ++i) {
            const Stage &stage = kernel_.algorithm.stages[products_[i]];
            std::vector<Extent> extents{parts_};
            extents.insert(extents.end(), stage.extents.begin(), stage.extents.end());
            partials_.push_back(storage_.scratch(identifier(stage.name()) + "_partial", Halide::Float(32), extents));
            const Member &member = *nest_.find_member(products_[i]);
            std::vector<Expr> place{tile::variable("k_part")};
            place.insert(place.end(), member.places.begin(), member.places.end());
            results.push_back({partials_.back(), place, value_of(member, 0, true)});
        }
        if (leaves_partials()) {
            return results;
        }
        for (const Member &m : nest_.members) {
            const Stage &stage = kernel_.algorithm.stages[m.stage];
            const bool is_product = std::find(products_.begin(), products_.end(), m.stage) != products_.end();
            if (!is_product && stage.func.function().has_update_definition()) {
                refuse(fmt::format("stage '{}' reduces beside it", stage.name()), "compute that stage at the root");
            }
            for (int i = 0; i < stage.func.outputs(); ++i) {
                for (const tile::Buffer &target : storage_.targets(m.stage, i)) {
                    results.push_back({target, m.places, value_of(m, i, is_product)});
                }
            }
        }
        return results;
    }
    Expr value_of(const Member &m, int element, bool is_product) {
        if (!is_product) {
            return values_.evaluate(kernel_.algorithm.stages[m.stage].func.function().definition().values()[element], m.environment, m.stage);
        }
        const std::size_t i = std::find(products_.begin(), products_.end(), m.stage) - products_.begin();
        return tile::read(sums_buffer(shape_.parts > 1 ? "whole_" + sums_name(i) : sums_name(i)),
                          {tile::variable("m_chunk"), tile::variable("n_strip"), tile::variable("n_block"), tile::variable("m_half"), tile::variable("n_lane")});
    }

    // ---- Axes and buffers ----
    void lay_out() {
        std::erase_if(nest_.axes, [&](const tile::Axis &a) {
            const bool unused = a.name == single_axis && shape_.rows != single_axis && shape_.columns != single_axis;
            return unused || (a.name != operands_.k && !is_tap(a.name) && std::any_of(nest_.members.begin(), nest_.members.end(), [&](const Member &m) { return m.reduction_axes.count(a.name) > 0; }));
        });
        tile::Axis &m = axis(shape_.rows), &n = axis(shape_.columns), &k = axis(operands_.k);
        m_tiles_ = ceil_div(m.extent, operands_.left.tile);
        n_tiles_ = ceil_div(n.extent, shape_.width);
        m.leaves = MatrixEpilogue::row_leaves(shape_);
        m.leaves.insert(m.leaves.begin(), {"m_tile", m_tiles_, Level::loop, operands_.left.tile, 1});
        n.leaves = MatrixEpilogue::column_leaves(shape_);
        k.leaves = {{operands_.taps.empty() ? "k_step" : "k_block", k_steps_, Level::loop, depth, 1}};
        for (const std::string &name : operands_.taps) {
            axis(name).leaves = {{name + "_tap", axis(name).extent, Level::loop, 1, 1}};
        }
        if (operands_.left.value.defined()) {
            const std::vector<tile::Leaf> inside = computed_term_leaves();
            k.leaves.insert(k.leaves.end(), inside.begin(), inside.end());
        }
        if (shape_.parts > 1) {
            n.leaves.insert(n.leaves.begin(), {"k_part", shape_.parts, Level::loop, shape_.own_width(), 1});
        }
        if (parts_ > 1) {
            k.leaves.insert(k.leaves.begin(), {"k_part", parts_, Level::loop, k_steps_ * Extent(depth), 1});
        }
        n.leaves.insert(n.leaves.begin(), {"n_tile", n_tiles_, Level::loop, shape_.width, 1});
        Extent tiles = m_tiles_ * n_tiles_;
        for (const std::string &name : shape_.batch) {
            tile::Axis &b = axis(name);
            tiles = tiles * b.extent;
            b.leaves = {{name + "_tile", b.extent, Level::loop, 1, 1}};
        }
        for (const tile::Axis &a : nest_.axes) {
            for (const tile::Leaf &leaf : a.leaves) {
                nest_.ranges[leaf.name] = {0, std::max<std::int64_t>(leaf.extent.bounds(kernel_.algorithm.symbols).max - 1, 0)};
            }
        }
        tiles_ = tiles;
        launch_.threads = (shape_.warpgroups + 1) * warpgroup;
        launch_.cluster = shape_.parts;
        launch_.blocks = persistent_ ? min(tiles, facts_.multiprocessors) : tiles * Extent(parts_);
        launch_.min_blocks_per_multiprocessor = 1;
        add_buffers();
    }
    tile::Axis &axis(const std::string &name) {
        return *std::find_if(nest_.axes.begin(), nest_.axes.end(), [&](const tile::Axis &a) { return a.name == name; });
    }
    void add_buffers() {
        add_tile(operands_.left);
        if (operands_.left.value.defined()) {
            for (const tile::Buffer &registers : computed_operand_buffers(operands_.left, operands_.type, shape_)) {
                launch_.buffers.push_back(registers);
            }
        }
        for (const MatrixOperand &right : operands_.right) {
            add_tile(right);
        }
        if (shape_.parts > 1) {
            add_shared("partials", Halide::Float(32), {shape_.chunks * shape_.width / 8, shape_.warpgroups * warpgroup, 4}, 1024).overlays = operands_.left.name;
        }
        add_shared("barriers", Halide::UInt(64), {2 * stages_}, 0);
        if (right_stays_) {
            add_shared("right_barriers", Halide::UInt(64), {2}, 0);
        }
        if (turns_ > 1) {
            add_shared("turns", Halide::UInt(64), {2 * turns_}, 0);
        }
        for (std::size_t i = 0; i < products_.size(); ++i) {
            add_sums(sums_name(i), shape_.parts);
            if (shape_.parts > 1) {
                add_sums("whole_" + sums_name(i), 1);
            }
        }
    }
    void add_sums(const std::string &name, int parts) {
        tile::Buffer sums = sums_buffer(name);
        sums.extents = {shape_.chunks, shape_.strips() * parts, shape_.blocks(), 2, shape_.lanes};
        sums.strides = contiguous_strides(sums.extents);
        launch_.buffers.push_back(sums);
    }
    tile::Buffer &add_shared(const std::string &name, Halide::Type type, std::vector<Extent> extents, std::int64_t alignment) {
        tile::Buffer shared;
        shared.name = name;
        shared.types = {type};
        shared.memory = tile::Memory::shared;
        shared.strides = contiguous_strides(extents);
        shared.extents = std::move(extents);
        shared.alignment = alignment;
        shared.ordered = true;
        launch_.buffers.push_back(shared);
        return launch_.buffers.back();
    }
    void add_tile(const MatrixOperand &operand) {
        add_shared(operand.name, operand.read.type, {stays(operand) ? k_steps_ : Extent(stages_), slot_rows(operand), depth}, 1024);  // 1024 bytes: a swizzled atom
        tile::Buffer map;
        map.name = operand.name + "_map";
        map.types = {operand.read.type};
        map.memory = tile::Memory::descriptor;
        map.binding = tile::Buffer::Binding::input;
        map.index = operand.read.buffer.index;
        map.map.dtype = from_halide(operand.read.type);
        map.map.swizzle_bytes = depth * operand.read.type.bytes();
        if (operand.pixels) {
            operand.pixels->describe(map.map, slot_rows(operand));
        } else {
            describe_tiles(operand, map.map);
        }
        launch_.buffers.push_back(map);
        std::erase_if(launch_.buffers, [&](const tile::Buffer &b) { return b.memory == tile::Memory::global && b.name == operand.read.buffer.name && !is_read(b.name); });
    }
    void describe_tiles(const MatrixOperand &operand, TensorMapArgument &map) {
        for (const std::string &name : operand.coordinates) {
            map.sizes.push_back(axis(name).extent);
            if (name != operand.coordinates[0]) {
                map.byte_strides.push_back(operand.read.stride(name) * Extent(operand.read.type.bytes()));
            }
            map.box.push_back(1);
        }
        map.box[0] = chunk;
        map.box[1] = static_cast<std::uint32_t>(operand.transposed ? depth : slot_rows(operand));
        map.element_offset = operand.read.offset;
    }
    bool stays(const MatrixOperand &operand) const { return right_stays_ && &operand == &operands_.right.front(); }
    /// Whether threads read the tensor too.
    bool is_read(const std::string &name) const { return other_reads_.count(name) > 0; }

    // ---- Statements ----
    /// The tiles of this block, one after another. `body` sees m_tile, n_tile and the batches' places.
    tile::Block over_tiles(tile::Block body) const {
        const Expr rank = tile::variable("block.rank");
        const Expr number = persistent_ ? tile::variable("round") * to_halide(launch_.blocks) + rank : parts_ > 1 ? rank / parts_ : rank;
        const Expr tile = tile::variable("tile");
        tile::Block inside;
        const auto let = [&](const std::string &name, const Expr &value) { inside.push_back({tile::Let{name, value}}); };
        const Expr plane = to_halide(m_tiles_ * n_tiles_);
        Expr batch = tile / plane;
        for (auto name = shape_.batch.rbegin(); name != shape_.batch.rend(); ++name) {
            const Expr extent = to_halide(nest_.find_axis(*name)->extent);
            let(*name + "_tile", batch % extent);
            batch = batch / extent;
        }
        // Stripes of raster_ rows of tiles, column by column: neighbours in time share what the L2 cache holds.
        const Expr stripe_tiles = to_halide(n_tiles_) * raster_;
        let("in_plane", tile % plane);
        const Expr in_plane = tile::variable("in_plane");
        let("stripe", in_plane / stripe_tiles * raster_);
        let("stripe_rows", Halide::min(to_halide(m_tiles_) - tile::variable("stripe"), raster_));
        let("in_stripe", in_plane % stripe_tiles);
        let("m_tile", tile::variable("stripe") + tile::variable("in_stripe") % tile::variable("stripe_rows"));
        let("n_tile", tile::variable("in_stripe") / tile::variable("stripe_rows"));
        if (parts_ > 1) {
            let("k_part", rank % parts_);
        }
        inside.insert(inside.end(), body.begin(), body.end());
        tile::Block statements{tile::Statement{tile::Let{"tile", number}}};
        if (!persistent_) {
            statements.insert(statements.end(), inside.begin(), inside.end());
            return statements;
        }
        statements.push_back({tile::If{tile < to_halide(tiles_), std::move(inside)}});
        return {rolled("round", ceil_div(tiles_, launch_.blocks), std::move(statements))};
    }
    static tile::Statement rolled(const std::string &name, const Extent &extent, tile::Block body) {
        tile::For loop{name, extent, Level::loop, std::move(body)};
        loop.rolled = true;
        return {std::move(loop)};
    }
    tile::Statement over_steps(tile::Block step) const { return rolled("k_step", k_steps_, std::move(step)); }
    Expr iteration(const Expr &step) const {
        const Expr round = turns_ > 1 ? tile::variable("round") * turns_ + tile::variable("turn") : tile::variable("round");
        return persistent_ ? round * to_halide(k_steps_) + step : step;
    }
    tile::Block begin_step() const {
        return {tile::Statement{tile::Let{"iteration", iteration(tile::variable("k_step"))}}, tile::Statement{tile::Let{"slot", tile::variable("iteration") % stages_}}};
    }

    /// Where the step stands along the axes that are summed over: taps run fastest.
    tile::Block places_of_step() const {
        Expr rest = tile::variable("k_step");
        if (parts_ > 1) {
            rest = rest + tile::variable("k_part") * to_halide(k_steps_);
        }
        tile::Block lets;
        for (auto name = operands_.taps.rbegin(); name != operands_.taps.rend(); ++name) {
            const Expr extent = to_halide(nest_.find_axis(*name)->extent);
            lets.push_back({tile::Let{*name + "_tap", rest % extent}});
            rest = rest / extent;
        }
        lets.push_back({tile::Let{"k_first", rest * depth}});
        return lets;
    }
    tile::Block fetch(const MatrixOperand &operand) const {
        const bool is_left = operand.rows == shape_.rows, once = stays(operand);
        const Expr step = tile::variable("k_first");
        Expr first = once ? Expr(0) : tile::variable(is_left ? "m_tile" : "n_tile") * operand.tile;
        if (is_left && turns_ > 1) {
            first = first + tile::variable("turn") * slot_rows(operand);
        }
        const auto load = [&](const std::string &function, std::size_t dimensions, int row, const std::vector<Expr> &coordinates) {
            const Expr slot = tile::variable(once ? "k_step" : "slot"), iteration = once ? Expr(0) : tile::variable("iteration");
            std::vector<tile::Invoke::Argument> arguments{buffer(operand.name, {slot, Expr(row), Expr(0)}), buffer(operand.name + "_map"),
                                                          buffer(once ? "right_barriers" : "barriers"), scalar(iteration)};
            for (const Expr &coordinate : coordinates) {
                arguments.push_back(scalar(coordinate));
            }
            return invoke(function, {once ? "1" : number(stages_), std::to_string(dimensions)}, arguments);
        };
        if (operand.pixels) {
            return {load("bulk_load_pixels", operand.pixels->space.size(), 0, operand.pixels->coordinates(first, step))};
        }
        tile::Block block;
        for (int row = 0; row < (operand.transposed ? slot_rows(operand) : 1); row += chunk) {
            std::vector<Expr> coordinates;
            for (const std::string &name : operand.coordinates) {
                const Expr own = row ? first + row : first;
                coordinates.push_back(name == operands_.k ? step : name == operand.rows ? own : tile::variable(name + (is_tap(name) ? "_tap" : "_tile")));
            }
            block.push_back(load("bulk_load", coordinates.size(), row, coordinates));
        }
        return block;
    }
    /// The right operand's tiles, all terms of them.
    tile::Block fetch_once() const {
        tile::Block step = places_of_step();
        const tile::Block loads = fetch(operands_.right.front());
        step.insert(step.end(), loads.begin(), loads.end());
        return {invoke("pipeline_acquire", {"1"}, {buffer("right_barriers"), scalar(Expr(0)), scalar(Expr(static_cast<int>(staying_bytes())))}),
                tile::Statement{tile::For{"k_step", k_steps_, Level::loop, step}}};
    }

    tile::Block produce() const {
        tile::Block step = begin_step();
        step.push_back(invoke("pipeline_acquire", {number(stages_)},
                              {buffer("barriers"), scalar(tile::variable("iteration")), scalar(Expr(static_cast<int>(slot_bytes())))}));
        const tile::Block places = places_of_step();
        step.insert(step.end(), places.begin(), places.end());
        const auto append = [&](const MatrixOperand &operand) {
            const tile::Block loads = fetch(operand);
            step.insert(step.end(), loads.begin(), loads.end());
        };
        append(operands_.left);
        if (!right_stays_) {
            std::for_each(operands_.right.begin(), operands_.right.end(), append);
        }
        tile::Block steps{over_steps(std::move(step))};
        if (turns_ > 1) {
            steps = {tile::Statement{tile::For{"turn", turns_, Level::loop, std::move(steps)}}};
        }
        tile::Block all = over_tiles(std::move(steps));
        if (right_stays_) {
            const tile::Block once = fetch_once();
            all.insert(all.begin(), once.begin(), once.end());
        }
        return {invoke("registers_decrease", {"24"}, {}),
                tile::Statement{tile::If{tile::variable("thread.rank") == shape_.warpgroups * warpgroup, std::move(all)}}};
    }

    tile::Block consume(const MatrixEpilogue &epilogue) const {
        const Expr slot = tile::variable("slot"), at = tile::variable("iteration"), k_step = tile::variable("k_step");
        const Expr own_rows = turns_ > 1 ? Expr(0) : tile::variable("thread.rank") / warpgroup * (shape_.chunks * chunk);
        const MatrixOperand &left = operands_.left;
        tile::Block step = begin_step();
        const bool computed = left.value.defined();
        step.push_back(invoke("pipeline_wait", {number(stages_)}, {buffer("barriers"), scalar(at)}, computed ? std::vector<std::string>{left.name} : std::vector<std::string>()));
        if (computed) {
            step.push_back(load_fetched(left, shape_, nest_));
            step.push_back(invoke("multiply_previous", {number(stages_)}, {buffer("barriers"), scalar(at), scalar(k_step)}, {sums_name(0)}));
            step.push_back(compute_operand(left, operands_.k, operands_.type, shape_, nest_));
            step.push_back(invoke("multiply_registers", {operands_.type.is_bfloat() ? "tw::bfloat16" : "tw::half", number(operands_.right[0].transposed)},
                                  {buffer(sums_name(0)), buffer("left_values"), buffer(operands_.right[0].name, {slot, Expr(0), Expr(0)}), scalar(k_step > 0)},
                                  {sums_name(0), "left_values"}));
            step.push_back(invoke("multiply_commit", {}, {}));
        }
        for (std::size_t i = 0; !computed && i < products_.size(); ++i) {
            const MatrixOperand &right = operands_.right[i];
            const std::vector<std::string> templates{operands_.type.is_bfloat() ? "tw::bfloat16" : "tw::half", number(left.transposed), number(right.transposed)};
            step.push_back(invoke("multiply_tiles", templates,
                                  {buffer(sums_name(i)), buffer(left.name, {slot, own_rows, Expr(0)}), buffer(right.name, {right_stays_ ? k_step : slot, Expr(0), Expr(0)}), scalar(k_step > 0)},
                                  {sums_name(i)}));
        }
        if (!computed) {
            step.push_back(invoke("multiply_next", {number(stages_)}, {buffer("barriers"), scalar(at), scalar(k_step)}));
        }
        tile::Block body{over_steps(std::move(step))};
        if (turns_ > 1) {
            body.insert(body.begin(), invoke("turn_wait", {}, {buffer("turns"), scalar(tile::variable("turn")), scalar(tile::variable("round"))}));
            body.push_back(invoke("turn_pass", {number(turns_)}, {buffer("turns"), scalar(tile::variable("turn"))}));
        }
        std::vector<std::string> all_sums;
        for (std::size_t i = 0; i < products_.size(); ++i) {
            all_sums.push_back(sums_name(i));
        }
        body.push_back(invoke("multiply_end", {number(stages_)}, {buffer("barriers"), scalar(iteration(to_halide(k_steps_) - 1))}, all_sums));
        for (std::size_t i = 0; i < products_.size(); ++i) {
            if (shape_.parts > 1) {
                body.push_back(invoke("cluster_sum", {number(shape_.parts), number(shape_.warpgroups)},
                                      {buffer(sums_name(i)), buffer("whole_" + sums_name(i)), buffer("partials")}, {sums_name(i), "whole_" + sums_name(i)}));
            } else if (shape_.lanes > 2) {
                body.push_back(invoke("gather_columns", {}, {buffer(sums_name(i))}, {sums_name(i)}));
            }
        }
        const tile::Block stores = epilogue.statements(shape_), finish = epilogue.finish();
        body.insert(body.end(), stores.begin(), stores.end());
        tile::Block all = over_tiles(body);
        if (right_stays_) {
            all.insert(all.begin(), invoke("pipeline_wait", {"1"}, {buffer("right_barriers"), scalar(Expr(0))}));
        }
        if (turns_ > 1) {
            all.insert(all.begin(), {tile::Let{"turn", tile::variable("thread.rank") / warpgroup}});
        }
        all.insert(all.begin(), invoke("registers_increase", {number(consumer_registers())}, {}));
        all.insert(all.end(), finish.begin(), finish.end());
        return all;
    }
    /// What the register file leaves to consumers beside a producer with 24, in multiples of 8 (PTX ISA, "setmaxnreg").
    int consumer_registers() const {
        const int at_launch = std::min(facts_.registers_per_multiprocessor / launch_.threads / 8 * 8, 248);
        return std::min((at_launch * (shape_.warpgroups + 1) - 24) / shape_.warpgroups / 8 * 8, 240);
    }

    const Kernel &kernel_;
    const Placement &placement_;
    Nest nest_;
    std::vector<int> products_;
    Storage &storage_;
    const GpuFacts &facts_;
    const Stage &stage_;
    const ScheduledKernel &all_schedules_;
    const ScheduledStage &schedule_;
    tile::Launch launch_;
    StageValues values_;
    MatrixOperands operands_;
    std::set<std::string> other_reads_;
    FragmentShape shape_;
    std::vector<tile::Buffer> partials_;
    int stages_ = 4, raster_ = 8;
    int parts_ = 1;  ///< blocks that share a tile's terms
    bool persistent_ = false;
    bool right_stays_ = false;  ///< shared memory holds all terms of the right operand, for all tiles of the block
    int turns_ = 1;             ///< parts of a tile, one a warpgroup, that pass through the pipeline in turn: one multiplies while another stores
    Extent m_tiles_, n_tiles_, k_steps_, tiles_;
};

}  // namespace

std::vector<int> tensor_core_stages(const Kernel &kernel, const Nest &nest, const ScheduledKernel &schedule) {
    std::vector<int> products;
    for (const Member &member : nest.members) {
        const ScheduledStage *stage = schedule.find(kernel.algorithm.stages[member.stage].name());
        if (stage && stage->find_flag("tensor_core")) {
            products.push_back(member.stage);
        }
    }
    return products;
}

std::vector<tile::Launch> lower_tensor_core(const Kernel &kernel, const Placement &placement, int nest, const std::vector<int> &products, Storage &storage,
                                            const ScheduledKernel &schedule, const GpuFacts &facts) {
    return TensorCoreLowering(kernel, placement, nest, products, storage, schedule, facts).run();
}

}  // namespace tilewright
