#include "lowering/passes/lower_tensor_core.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/passes/stage_values.h"
#include "lowering/passes/strided_operand.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int depth = 64;        // elements of a tile along K: 128 bytes, one swizzled row
constexpr int chunk = 64;        // rows of a warpgroup's multiply, and columns of a transposed chunk
constexpr int group_columns = 32;

class TensorCoreLowering {
public:
    TensorCoreLowering(const Kernel &kernel, const Placement &placement, int index, int product, Storage &storage, const ScheduledKernel &schedule,
                       const GpuFacts &facts)
        : kernel_(kernel), placement_(placement), nest_(placement.nests[index]), product_(product), storage_(storage), facts_(facts),
          stage_(kernel.algorithm.stages[product]), schedule_(*schedule.find(stage_.name())), values_(kernel, nest_, placement, storage, launch_) {}

    std::vector<tile::Launch> run() {
        launch_.name = identifier(kernel_.name + "_" + stage_.name());
        find_operands();
        read_schedule();
        lay_out();
        launch_.axes = nest_.axes;
        launch_.body = {tile::Statement{tile::Comment{"Slots of the pipeline: full and empty barriers"}}};
        launch_.body.push_back(invoke("pipeline_begin", {std::to_string(stages_)}, {buffer("barriers"), scalar(Expr(warpgroups_))}));
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        tile::Block producer = produce(), consumers = consume();
        producer.push_back({tile::Exit{}});
        launch_.body.push_back({tile::If{tile::variable("thread.rank") >= warpgroups_ * 128, std::move(producer)}});
        launch_.body.insert(launch_.body.end(), consumers.begin(), consumers.end());
        return {std::move(launch_)};
    }

private:
    struct Operand {
        StridedOperand read;
        std::string rows;        ///< the axis M or N
        bool transposed = false; ///< memory runs along M or N rather than K
        int tile = 0;            ///< rows of a tile
        std::string name;        ///< of its tile in shared memory; its descriptor is NAME_map
        std::vector<std::string> coordinates;  ///< axes of the descriptor, innermost first
    };

    [[noreturn]] void refuse(const std::string &cause, const std::string &repair) const {
        const ScheduleFlag *flag = schedule_.find_flag("tensor_core");
        schedule_error(flag->directive.location, stage_.name(), cause, repair);
    }

    const Member &member() const { return *nest_.find_member(product_); }

    // ---- What is multiplied ----
    void find_operands() {
        const auto fold = match_fold(stage_.func);
        const Expr term = fold && fold->combiner == Combiner::sum && fold->terms.size() == 1
                              ? values_.evaluate(fold->terms[0], member().environment, product_) : Expr();
        const auto *product = term.defined() ? term.as<hi::Mul>() : nullptr;
        if (!product || !(stage_.func.types()[0] == Halide::Float(32))) {
            refuse("it is no sum of products in float32", "remove tensor_core");
        }
        if (member().reduction_axes.size() != 1) {
            refuse("it is summed over several axes", "fuse the reduction variables, or remove tensor_core");
        }
        k_ = *member().reduction_axes.begin();
        const auto left = match_strided_operand(product->a, nest_, launch_), right = match_strided_operand(product->b, nest_, launch_);
        if (!left || !right) {
            refuse("an operand is no plain strided read of a tensor", "store the operand with compute_root, or remove tensor_core");
        }
        type_ = left->type;
        const bool half = (type_.is_float() || type_.is_bfloat()) && type_.bits() == 16;
        if (!half || right->type != type_) {
            refuse("its operands are not both float16 or both bfloat16", "remove tensor_core");
        }
        for (const tile::Axis &axis : nest_.axes) {
            if (axis.name == k_) {
                continue;
            }
            const bool in_left = left->strides.count(axis.name) > 0, in_right = right->strides.count(axis.name) > 0;
            std::string &role = in_left == in_right ? role_none_ : in_left ? a_.rows : b_.rows;
            if (in_left == in_right) {
                batch_.push_back(axis.name);
            } else if (!role.empty()) {
                refuse(fmt::format("axes '{}' and '{}' belong to one operand", role, axis.name), "fuse them into one axis");
            } else {
                role = axis.name;
            }
        }
        if (a_.rows.empty() || b_.rows.empty()) {
            refuse("an operand varies along no axis of its own", "remove tensor_core");
        }
        a_.read = *left;
        b_.read = *right;
        // The product's columns are the axis along which the output runs.
        const std::vector<std::string> order = axis_order();
        if (std::find(order.begin(), order.end(), a_.rows) > std::find(order.begin(), order.end(), b_.rows)) {
            std::swap(a_, b_);
        }
        a_.name = "left";
        b_.name = "right";
        describe(a_);
        describe(b_);
    }
    std::vector<std::string> axis_order() const {
        std::vector<std::string> names;
        for (const tile::Axis &axis : nest_.axes) {
            names.push_back(axis.name);
        }
        return names;
    }

    /// Dimensions of the operand's descriptor: the unit stride first, then the other of its own, then batches.
    void describe(Operand &operand) {
        operand.transposed = !(operand.read.stride(k_) == Extent(1));
        if (operand.transposed && !(operand.read.stride(operand.rows) == Extent(1))) {
            refuse(fmt::format("tensor '{}' runs along none of the product's axes", operand.read.buffer.name), "remove tensor_core");
        }
        operand.coordinates = operand.transposed ? std::vector<std::string>{operand.rows, k_} : std::vector<std::string>{k_, operand.rows};
        for (const std::string &axis : batch_) {
            if (operand.read.strides.count(axis)) {
                operand.coordinates.push_back(axis);
            }
        }
        if (operand.coordinates.size() > 5) {
            refuse("the copy unit knows five dimensions", "fuse the batch axes");
        }
        for (std::size_t i = 1; i < operand.coordinates.size(); ++i) {
            const Extent bytes = operand.read.stride(operand.coordinates[i]) * Extent(type_.bytes());
            if (!(mod(bytes, 16) == Extent(0))) {
                refuse(fmt::format("a stride of tensor '{}' is {} bytes, no multiple of 16", operand.read.buffer.name, bytes.to_string()), "remove tensor_core");
            }
        }
    }

    // ---- How ----
    std::int64_t tile_of(const std::string &axis_name, std::int64_t otherwise) const {
        for (const tile::Leaf &leaf : nest_.find_axis(axis_name)->leaves) {
            if (leaf.level == Level::grid && leaf.stride.is_constant()) {
                return leaf.stride.value();
            }
        }
        return otherwise;
    }
    void read_schedule() {
        a_.tile = static_cast<int>(tile_of(a_.rows, 0));
        b_.tile = static_cast<int>(tile_of(b_.rows, 0));
        const ScheduleFlag *groups = schedule_.find_flag("warpgroups"), *pipeline = schedule_.find_flag("pipeline"), *unit = schedule_.find_flag("tensor_core"),
                           *raster = schedule_.find_flag("raster");
        warpgroups_ = groups ? static_cast<int>(groups->number(0)) : 2;
        stages_ = pipeline ? static_cast<int>(pipeline->number(1)) : 4;
        raster_ = raster ? static_cast<int>(raster->number(0)) : 8;
        persistent_ = schedule_.find_flag("persistent") != nullptr;
        if (unit->number(0) != chunk || unit->number(2) != 16) {
            refuse("the unit of Hopper multiplies 64 rows, 16 deep", fmt::format("write tensor_core(64, {}, 16)", b_.tile));
        }
        static const std::vector<int> widths = {32, 64, 96, 128, 160, 192, 224, 256};
        if (std::find(widths.begin(), widths.end(), b_.tile) == widths.end() || unit->number(1) != b_.tile) {
            refuse(fmt::format("its tiles are {} wide", b_.tile), "split the output's columns by a multiple of 32 up to 256, and give tensor_core the same number");
        }
        if (b_.transposed && b_.tile % chunk != 0) {
            refuse("an operand that runs along the columns is fetched 64 columns at a time", "make the tile's width a multiple of 64");
        }
        if (a_.tile <= 0 || warpgroups_ < 1 || warpgroups_ > 3 || a_.tile % (chunk * warpgroups_) != 0) {
            refuse(fmt::format("tiles {} high do not divide among {} warpgroups of 64 rows", a_.tile, warpgroups_), "split the output's rows by 64 times warpgroups, or a multiple");
        }
        if (a_.tile > 256) {
            refuse("a tile is at most 256 high", "split the output's rows by 256 or less");
        }
        rows_ = a_.tile / (chunk * warpgroups_);
        if (rows_ * b_.tile > 512) {
            refuse(fmt::format("each thread would hold {} sums", rows_ * b_.tile / 2), "make the tile smaller or add warpgroups");
        }
    }

    /// Axes as the multiply leaves its sums, buffers, and the launch's size.
    void lay_out() {
        tile::Axis &m = axis(a_.rows), &n = axis(b_.rows), &k = axis(k_);
        m_tiles_ = ceil_div(m.extent, a_.tile);
        n_tiles_ = ceil_div(n.extent, b_.tile);
        k_steps_ = ceil_div(k.extent, depth);
        m.leaves = {{"m_tile", m_tiles_, Level::loop, a_.tile, 1},
                    {"m_warpgroup", warpgroups_, Level::thread, chunk * rows_, 128},
                    {"m_chunk", rows_, Level::unroll, chunk, 1},
                    {"m_warp", 4, Level::thread, 16, 32},
                    {"m_half", 2, Level::unroll, 8, 1},
                    {"m_row", 8, Level::thread, 1, 4}};
        n.leaves = {{"n_tile", n_tiles_, Level::loop, b_.tile, 1},
                    {"n_group", b_.tile / group_columns, Level::unroll, group_columns, 1},
                    {"n_block", 4, Level::thread, 8, 1},
                    {"n_lane", 8, Level::vector, 1, 1}};
        k.leaves = {{"k_step", k_steps_, Level::loop, depth, 1}};
        Extent tiles = m_tiles_ * n_tiles_;
        for (const std::string &name : batch_) {
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
        launch_.threads = (warpgroups_ + 1) * 128;
        launch_.blocks = persistent_ ? min(tiles, facts_.multiprocessors) : tiles;
        launch_.min_blocks_per_multiprocessor = 1;
        add_tile(a_);
        add_tile(b_);
        tile::Buffer barriers;
        barriers.name = "barriers";
        barriers.types = {Halide::UInt(64)};
        barriers.memory = tile::Memory::shared;
        barriers.extents = {2 * stages_};
        barriers.strides = {1};
        launch_.buffers.push_back(barriers);
        tile::Buffer sums;
        sums.name = "sums";
        sums.types = {Halide::Float(32)};
        sums.memory = tile::Memory::registers;
        sums.extents = {rows_, b_.tile / group_columns, 2, 8};
        sums.strides = contiguous_strides(sums.extents);
        launch_.buffers.push_back(sums);
        values_.keep(product_, sums, {tile::variable("m_chunk"), tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")});
    }
    tile::Axis &axis(const std::string &name) {
        return *std::find_if(nest_.axes.begin(), nest_.axes.end(), [&](const tile::Axis &a) { return a.name == name; });
    }
    void add_tile(const Operand &operand) {
        tile::Buffer tile;
        tile.name = operand.name;
        tile.types = {type_};
        tile.memory = tile::Memory::shared;
        tile.extents = {stages_, operand.tile, depth};
        tile.strides = contiguous_strides(tile.extents);
        tile.alignment = 1024;  // a swizzled atom
        launch_.buffers.push_back(tile);
        tile::Buffer map;
        map.name = operand.name + "_map";
        map.types = {type_};
        map.memory = tile::Memory::descriptor;
        map.map.buffer = operand.read.buffer.index;
        map.map.dtype = from_halide(type_);
        for (const std::string &name : operand.coordinates) {
            map.map.sizes.push_back(axis(name).extent);
            if (name != operand.coordinates[0]) {
                map.map.byte_strides.push_back(operand.read.stride(name) * Extent(type_.bytes()));
            }
            map.map.box.push_back(1);
        }
        map.map.box[0] = chunk;
        map.map.box[1] = operand.transposed ? depth : operand.tile;
        map.map.swizzle_bytes = 128;
        map.map.element_offset = operand.read.offset;
        launch_.buffers.push_back(map);
        std::erase_if(launch_.buffers, [&](const tile::Buffer &b) { return b.memory == tile::Memory::global && b.name == operand.read.buffer.name; });
    }

    // ---- Statements ----
    static tile::Invoke::Argument scalar(const Expr &e) { return {"", {}, e}; }
    static tile::Invoke::Argument buffer(const std::string &name, std::vector<Expr> indices = {}) { return {name, std::move(indices), Expr()}; }
    tile::Statement invoke(const std::string &function, std::vector<std::string> templates, std::vector<tile::Invoke::Argument> arguments,
                           std::vector<std::string> writes = {}) const {
        tile::Invoke call;
        call.function = function;
        call.template_arguments = std::move(templates);
        call.arguments = std::move(arguments);
        call.reads = call.writes = std::move(writes);
        return {call};
    }

    /// The tiles of this block, one after another. `body` sees m_tile, n_tile and the batches' places.
    tile::Block over_tiles(tile::Block body) const {
        const Expr number = persistent_ ? tile::variable("round") * to_halide(launch_.blocks) + tile::variable("block.rank") : tile::variable("block.rank");
        const Expr tile = tile::variable("tile");
        tile::Block inside;
        const auto let = [&](const std::string &name, const Expr &value) { inside.push_back({tile::Let{name, value}}); };
        Expr rest = tile;
        const Expr plane = to_halide(m_tiles_ * n_tiles_);
        Expr place = tile % plane, batch = tile / plane;
        for (auto name = batch_.rbegin(); name != batch_.rend(); ++name) {
            const Expr extent = to_halide(nest_.find_axis(*name)->extent);
            let(*name + "_tile", batch % extent);
            batch = batch / extent;
        }
        // Stripes of raster_ rows of tiles, column by column: neighbours in time share what the L2 cache holds.
        const Expr stripe_tiles = to_halide(n_tiles_) * raster_;
        let("in_plane", place);
        const Expr in_plane = tile::variable("in_plane");
        let("stripe", in_plane / stripe_tiles * raster_);
        let("stripe_rows", Halide::min(to_halide(m_tiles_) - tile::variable("stripe"), raster_));
        let("in_stripe", in_plane % stripe_tiles);
        let("m_tile", tile::variable("stripe") + tile::variable("in_stripe") % tile::variable("stripe_rows"));
        let("n_tile", tile::variable("in_stripe") / tile::variable("stripe_rows"));
        inside.insert(inside.end(), body.begin(), body.end());
        tile::Block statements{tile::Statement{tile::Let{"tile", number}}};
        if (!persistent_) {
            statements.insert(statements.end(), inside.begin(), inside.end());
            return statements;
        }
        statements.push_back({tile::If{tile < to_halide(tiles_), std::move(inside)}});
        return {tile::Statement{tile::For{"round", ceil_div(tiles_, launch_.blocks), Level::loop, std::move(statements)}}};
    }
    Expr iteration() const {
        const Expr step = tile::variable("k_step");
        return persistent_ ? tile::variable("round") * to_halide(k_steps_) + step : step;
    }

    tile::Block fetch(const Operand &operand, const Expr &slot) const {
        const tile::Axis &rows = *nest_.find_axis(operand.rows);
        const Expr first = tile::variable(rows.leaves[0].name) * operand.tile, step = tile::variable("k_step") * depth;
        const int pieces = operand.transposed ? operand.tile / chunk : 1;
        tile::Block block;
        for (int piece = 0; piece < pieces; ++piece) {
            std::vector<tile::Invoke::Argument> arguments{buffer(operand.name, {slot, Expr(piece * chunk), Expr(0)}), buffer(operand.name + "_map"),
                                                          buffer("barriers"), scalar(tile::variable("iteration"))};
            for (const std::string &name : operand.coordinates) {
                const Expr own = piece ? first + piece * chunk : first;
                arguments.push_back(scalar(name == k_ ? step : name == operand.rows ? own : tile::variable(name + "_tile")));
            }
            block.push_back(invoke("bulk_load", {std::to_string(stages_), std::to_string(operand.coordinates.size())}, arguments));
        }
        return block;
    }

    tile::Block produce() const {
        const int bytes = (a_.tile + b_.tile) * depth * type_.bytes();
        tile::Block step{tile::Statement{tile::Let{"iteration", iteration()}},
                         tile::Statement{tile::Let{"slot", tile::variable("iteration") % stages_}},
                         invoke("pipeline_acquire", {std::to_string(stages_)}, {buffer("barriers"), scalar(tile::variable("iteration")), scalar(Expr(bytes))})};
        for (const Operand *operand : {&a_, &b_}) {
            const tile::Block loads = fetch(*operand, tile::variable("slot"));
            step.insert(step.end(), loads.begin(), loads.end());
        }
        tile::Block all = over_tiles({tile::Statement{tile::For{"k_step", k_steps_, Level::loop, step}}});
        return {invoke("registers_decrease", {"24"}, {}),
                tile::Statement{tile::If{tile::variable("thread.rank") == warpgroups_ * 128, std::move(all)}}};
    }

    tile::Block consume() {
        const Expr slot = tile::variable("slot");
        const Expr own_rows = tile::variable("thread.rank") / 128 * (rows_ * chunk);
        std::vector<std::string> templates{std::to_string(stages_), type_.is_bfloat() ? "tw::bfloat16" : "tw::half", std::to_string(a_.transposed), std::to_string(b_.transposed)};
        tile::Block step{tile::Statement{tile::Let{"iteration", iteration()}},
                         tile::Statement{tile::Let{"slot", tile::variable("iteration") % stages_}},
                         invoke("multiply_step", templates,
                                {buffer("sums"), buffer(a_.name, {slot, own_rows, Expr(0)}), buffer(b_.name, {slot, Expr(0), Expr(0)}), buffer("barriers"),
                                 scalar(tile::variable("iteration")), scalar(tile::variable("k_step"))}, {"sums"})};
        tile::Block body{tile::Statement{tile::For{"k_step", k_steps_, Level::loop, step}}};
        const Expr last = persistent_ ? tile::variable("round") * to_halide(k_steps_) + (to_halide(k_steps_) - 1) : to_halide(k_steps_) - 1;
        body.push_back(invoke("multiply_end", {std::to_string(stages_)}, {buffer("sums"), buffer("barriers"), scalar(last)}, {"sums"}));
        const tile::Block stores = epilogue();
        body.insert(body.end(), stores.begin(), stores.end());
        tile::Block all = over_tiles(body);
        all.insert(all.begin(), invoke("registers_increase", {std::to_string(consumer_registers())}, {}));
        return all;
    }
    /// What the register file leaves to consumers beside a producer with 24, in multiples of 8 (PTX ISA, "setmaxnreg").
    int consumer_registers() const {
        const int at_launch = std::min(facts_.registers_per_multiprocessor / launch_.threads / 8 * 8, 248);
        return std::min((at_launch * (warpgroups_ + 1) - 24) / warpgroups_ / 8 * 8, 240);
    }

    /// Every stage that is stored, at each place that the thread holds a sum of.
    tile::Block epilogue() {
        tile::Block innermost;
        std::vector<std::pair<std::string, tile::Block>> stores;
        for (const Member &m : nest_.members) {
            if (m.stage != product_ && kernel_.algorithm.stages[m.stage].func.function().has_update_definition()) {
                refuse(fmt::format("stage '{}' reduces beside it", kernel_.algorithm.stages[m.stage].name()), "compute that stage at the root");
            }
            const hi::Function function = kernel_.algorithm.stages[m.stage].func.function();
            const int outputs = kernel_.algorithm.stages[m.stage].func.outputs();
            for (int i = 0; i < outputs; ++i) {
                const std::vector<tile::Buffer> targets = storage_.targets(m.stage, i);
                if (targets.empty()) {
                    continue;
                }
                const tile::Buffer &sums = *launch_.find_buffer("sums");
                const Expr value = m.stage == product_ ? tile::read(sums, {tile::variable("m_chunk"), tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")})
                                                       : values_.evaluate(function.definition().values()[i], m.environment, m.stage);
                for (const tile::Buffer &target : targets) {
                    values_.use(target);
                    innermost.push_back({tile::Store{target.name, m.places, {value}}});
                }
            }
        }
        tile::Block body{tile::Statement{tile::For{"n_lane", 8, Level::vector, guarded(innermost)}}};
        for (const auto &[name, extent] : {std::pair<std::string, int>{"m_half", 2}, {"n_group", b_.tile / group_columns}, {"m_chunk", rows_}}) {
            body = {tile::Statement{tile::For{name, extent, Level::unroll, std::move(body)}}};
        }
        return body;
    }
    tile::Block guarded(tile::Block body) const {
        for (const std::string &name : {b_.rows, a_.rows}) {
            const tile::Axis &a = *nest_.find_axis(name);
            if (!a.exact()) {
                body = {tile::Statement{tile::If{tile::variable(name) < to_halide(a.extent), std::move(body)}}};
            }
        }
        return body;
    }

    const Kernel &kernel_;
    const Placement &placement_;
    Nest nest_;
    int product_;
    Storage &storage_;
    const GpuFacts &facts_;
    const Stage &stage_;
    const ScheduledStage &schedule_;
    tile::Launch launch_;
    StageValues values_;
    Halide::Type type_;
    std::string k_, role_none_;
    std::vector<std::string> batch_;
    Operand a_, b_;
    int warpgroups_ = 2, stages_ = 4, raster_ = 8, rows_ = 1;
    bool persistent_ = false;
    Extent m_tiles_, n_tiles_, k_steps_, tiles_;
};

}  // namespace

std::optional<int> tensor_core_stage(const Kernel &kernel, const Nest &nest, const ScheduledKernel &schedule) {
    for (const Member &member : nest.members) {
        const ScheduledStage *stage = schedule.find(kernel.algorithm.stages[member.stage].name());
        if (stage && stage->find_flag("tensor_core")) {
            return member.stage;
        }
    }
    return std::nullopt;
}

std::vector<tile::Launch> lower_tensor_core(const Kernel &kernel, const Placement &placement, int nest, int product, Storage &storage,
                                            const ScheduledKernel &schedule, const GpuFacts &facts) {
    return TensorCoreLowering(kernel, placement, nest, product, storage, schedule, facts).run();
}

}  // namespace tilewright
