#include "lowering/products/lower_tensor_core.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/finish_product.h"
#include "lowering/nests/invoke.h"
#include "lowering/nests/stage_values.h"
#include "lowering/products/computed_operand.h"
#include "lowering/products/matrix_epilogue.h"
#include "lowering/products/matrix_operands.h"
#include "lowering/products/product_pipeline.h"
#include "lowering/products/row_stages.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

using Halide::Expr;
using tile::Level;

namespace {

constexpr const char *single_axis = "single";

class TensorCoreLowering {
public:
    TensorCoreLowering(const Kernel &kernel, const Placement &placement, int index, std::vector<int> products, Storage &storage,
                       const ScheduledKernel &schedule, const GpuFacts &facts)
        : kernel_(kernel),
          placement_(placement),
          nest_(placement.nests[index]),
          products_(std::move(products)),
          storage_(storage),
          facts_(facts),
          stage_(kernel.algorithm.stages[products_.front()]),
          all_schedules_(schedule),
          schedule_(*schedule.find(stage_.name())),
          values_(kernel, nest_, placement, storage, launch_),
          rows_(kernel, nest_, launch_, values_) {}

    std::vector<tile::Launch> run() {
        launch_.name = identifier(kernel_.name + "_" + stage_.name());
        add_single_axis();
        plan_.operands = find_matrix_operands(kernel_, nest_, products_, schedule_.find_flag("tensor_core")->number(1),
                                              schedule_.find_flag("precision") != nullptr, values_, launch_,
                                              [this](const std::string &cause, const std::string &repair) { refuse(cause, repair); });
        std::erase(plan_.operands.batch, single_axis);
        read_product_schedule(plan_, kernel_, nest_, stage_, all_schedules_, storage_, facts_,
                              [this](const std::string &cause, const std::string &repair) { refuse(cause, repair); });
        keep_sums();
        keep_rows();
        const std::vector<MatrixResult> stored = results();
        const auto note_reads = [&](const Expr &value) {
            visit_reads(value, [&](const Halide::Internal::Call *call) { other_reads_.insert(call->name); });
        };
        for (const MatrixResult &result : stored) {
            note_reads(result.value);
        }
        const std::vector<Expr> kept = rows_.element_values();
        std::for_each(kept.begin(), kept.end(), note_reads);
        if (plan_.operands.left.value.defined()) {
            note_reads(without_fetched(plan_.operands.left));
        }
        MatrixEpilogue epilogue(nest_, launch_, values_, stored, kept);
        epilogue.choose(plan_.shape, plan_.free_bytes(facts_));
        lay_out();
        epilogue.declare(plan_.shape);
        rows_.declare(plan_.shape, plan_.row_blocks);
        launch_.axes = nest_.axes;
        launch_.body = {prefetch_descriptors(launch_), tile::Statement{tile::Comment{"Slots of the pipeline: full and empty barriers"}}};
        launch_.body.push_back(invoke("pipeline_begin", {std::to_string(plan_.stages)},
                                      {buffer("barriers"), scalar(Expr(plan_.turns > 1 ? 1 : plan_.shape.warpgroups))}));
        if (plan_.right_stays) {
            launch_.body.push_back(invoke("pipeline_begin", {"1"}, {buffer("right_barriers"), scalar(Expr(plan_.shape.warpgroups))}));
        }
        if (plan_.turns > 1) {
            launch_.body.push_back(invoke("pipeline_begin", {std::to_string(plan_.turns)}, {buffer("turns"), scalar(Expr(1))}));
        }
        const tile::Block begin = rows_.begin(plan_.shape, plan_.row_blocks);
        launch_.body.insert(launch_.body.end(), begin.begin(), begin.end());
        // ptxas gives each warpgroup its own register count only where their parts of the program are apart.
        const ProductPipeline pipeline(plan_, nest_, facts_, launch_.blocks);
        tile::Block producer = pipeline.produce(), consumers = pipeline.consume(epilogue, rows_);
        producer.push_back({tile::Exit{}});
        launch_.body.push_back(
            {tile::If{tile::variable("thread.rank") >= plan_.shape.warpgroups * ProductPlan::warpgroup, std::move(producer)}});
        launch_.body.insert(launch_.body.end(), consumers.begin(), consumers.end());
        std::vector<tile::Launch> launches{std::move(launch_)};
        if (plan_.leaves_partials()) {
            launches.push_back(finish_product(kernel_, placement_, nest_, products_, partials_,
                                              plan_.shape.columns == single_axis ? plan_.shape.rows : plan_.shape.columns, storage_));
        }
        return launches;
    }

private:
    [[noreturn]] void refuse(const std::string &cause, const std::string &repair) const {
        const ScheduleFlag *flag = schedule_.find_flag("tensor_core");
        schedule_error(flag->directive.location, stage_.name(), cause, repair);
    }

    /// A product of one row may stand over no axis for it: this one does, unless another axis of one place is found first.
    void add_single_axis() {
        tile::Axis single;
        single.name = single_axis;
        nest_.axes.insert(nest_.axes.begin(), single);
        nest_.ranges[single_axis] = {0, 0};
    }

    // ---- Values ----
    /// From now on the products are read from registers.
    void keep_sums() {
        const std::vector<Expr> place{tile::variable("m_chunk"), tile::variable("n_strip"), tile::variable("n_block"),
                                      tile::variable("m_half"), tile::variable("n_lane")};
        for (std::size_t i = 0; i < products_.size(); ++i) {
            values_.keep(products_[i], sums_buffer(plan_.shape.parts > 1 ? "whole_" + plan_.sums_name(i) : plan_.sums_name(i)), place);
        }
    }
    tile::Buffer sums_buffer(const std::string &name) const {
        return tile::dense_buffer(name, {plan_.operands.sum_type}, tile::Memory::registers, {plan_.shape.chunks, 1, 1, 2, 2});
    }
    /// Reductions along the rows, and what is made of them.
    void keep_rows() {
        if (plan_.operands.turned || plan_.parts > 1) {
            if (std::any_of(nest_.members.begin(), nest_.members.end(), [&](const Member &m) { return is_reduction(m); })) {
                refuse("its rows are reduced, and it splits its terms or the unit's rows are its columns",
                       "remove split_blocks, or make the tile 64 rows high or a multiple");
            }
            return;
        }
        rows_.keep(products_, plan_.shape, [this](const std::string &cause, const std::string &repair) { refuse(cause, repair); });
        const Extent blocks = ceil_div(nest_.find_axis(plan_.shape.columns)->extent, plan_.shape.width);
        if (!rows_.empty() && !(blocks == Extent(plan_.row_blocks))) {
            refuse(fmt::format("its rows are reduced, and {} blocks hold one", blocks.to_string()),
                   fmt::format("write cluster({}, 1), or make the tiles wider", blocks.to_string()));
        }
        if (rows_.empty() && plan_.row_blocks > 1) {
            refuse("a cluster's blocks share the terms of one tile, or rows that are reduced",
                   fmt::format("write split_blocks and cluster({}, 1) together", plan_.row_blocks));
        }
        plan_.exchange_bytes = rows_.exchange_bytes(plan_.shape, plan_.row_blocks);
        plan_.raster = plan_.row_blocks > 1 ? 1 : plan_.raster;  // neighbours hold one row
    }
    bool is_product(const Member &m) const { return std::find(products_.begin(), products_.end(), m.stage) != products_.end(); }
    bool is_reduction(const Member &m) const {
        return !is_product(m) && kernel_.algorithm.stages[m.stage].func.function().has_update_definition();
    }
    /// Every stage that is stored, at the places that a thread holds sums of.
    std::vector<MatrixResult> results() {
        std::vector<MatrixResult> results;
        for (std::size_t i = 0; plan_.leaves_partials() && i < products_.size(); ++i) {
            const Stage &stage = kernel_.algorithm.stages[products_[i]];
            std::vector<Extent> extents{plan_.parts};
            extents.insert(extents.end(), stage.extents.begin(), stage.extents.end());
            partials_.push_back(storage_.scratch(identifier(stage.name()) + "_partial", plan_.operands.sum_type, extents));
            const Member &member = *nest_.find_member(products_[i]);
            std::vector<Expr> place{tile::variable("k_part")};
            place.insert(place.end(), member.places.begin(), member.places.end());
            results.push_back({partials_.back(), place, value_of(member, 0, true)});
        }
        if (plan_.leaves_partials()) {
            return results;
        }
        for (const Member &m : nest_.members) {
            const Stage &stage = kernel_.algorithm.stages[m.stage];
            for (int i = 0; i < stage.func.outputs(); ++i) {
                for (const tile::Buffer &target : storage_.targets(m.stage, i)) {
                    results.push_back({target, m.places, value_of(m, i, is_product(m))});
                }
            }
        }
        return results;
    }
    Expr value_of(const Member &m, int element, bool is_product) {
        if (!is_product) {
            const Expr kept = rows_.kept(m.stage, element);
            return kept.defined() ? kept
                                  : values_.evaluate(kernel_.algorithm.stages[m.stage].func.function().definition().values()[element],
                                                     m.environment, m.stage);
        }
        const std::size_t i = std::find(products_.begin(), products_.end(), m.stage) - products_.begin();
        return tile::read(sums_buffer(plan_.shape.parts > 1 ? "whole_" + plan_.sums_name(i) : plan_.sums_name(i)),
                          {tile::variable("m_chunk"), tile::variable("n_strip"), tile::variable("n_block"), tile::variable("m_half"),
                           tile::variable("n_lane")});
    }

    // ---- Axes and buffers ----
    void lay_out() {
        std::erase_if(nest_.axes, [&](const tile::Axis &a) {
            const bool unused = a.name == single_axis && plan_.shape.rows != single_axis && plan_.shape.columns != single_axis;
            return unused || (a.name != plan_.operands.k && a.name != plan_.shape.columns && !plan_.is_tap(a.name) &&
                              std::any_of(nest_.members.begin(), nest_.members.end(),
                                          [&](const Member &m) { return m.reduction_axes.count(a.name) > 0; }));
        });
        tile::Axis &m = axis(plan_.shape.rows), &n = axis(plan_.shape.columns), &k = axis(plan_.operands.k);
        plan_.m_tiles = ceil_div(m.extent, plan_.operands.left.tile);
        plan_.n_tiles = ceil_div(n.extent, plan_.shape.width);
        m.leaves = MatrixEpilogue::row_leaves(plan_.shape);
        m.leaves.insert(m.leaves.begin(), {"m_tile", plan_.m_tiles, Level::loop, plan_.operands.left.tile, 1});
        n.leaves = MatrixEpilogue::column_leaves(plan_.shape);
        k.leaves = {{plan_.operands.taps.empty() ? "k_step" : "k_block", plan_.k_steps, Level::loop, plan_.depth(), 1}};
        for (const std::string &name : plan_.operands.taps) {
            axis(name).leaves = {{name + "_tap", axis(name).extent, Level::loop, 1, 1}};
        }
        if (plan_.operands.left.value.defined()) {
            const std::vector<tile::Leaf> inside = computed_term_leaves();
            k.leaves.insert(k.leaves.end(), inside.begin(), inside.end());
        }
        if (plan_.shape.parts > 1) {
            n.leaves.insert(n.leaves.begin(), {"k_part", plan_.shape.parts, Level::loop, plan_.shape.own_width(), 1});
        }
        if (plan_.parts > 1) {
            k.leaves.insert(k.leaves.begin(), {"k_part", plan_.parts, Level::loop, plan_.k_steps * Extent(plan_.depth()), 1});
        }
        n.leaves.insert(n.leaves.begin(), {"n_tile", plan_.n_tiles, Level::loop, plan_.shape.width, 1});
        Extent tiles = plan_.m_tiles * plan_.n_tiles;
        for (const std::string &name : plan_.shape.batch) {
            tile::Axis &b = axis(name);
            tiles = tiles * b.extent;
            b.leaves = {{name + "_batch", b.extent, Level::loop, 1, 1}};
        }
        for (const tile::Axis &a : nest_.axes) {
            for (const tile::Leaf &leaf : a.leaves) {
                nest_.ranges[leaf.name] = {0, std::max<std::int64_t>(leaf.extent.bounds(kernel_.algorithm.symbols).max - 1, 0)};
            }
        }
        plan_.tiles = tiles;
        launch_.threads = plan_.threads();
        launch_.cluster = plan_.shape.parts * plan_.row_blocks;
        launch_.blocks = plan_.persistent ? min(tiles, persistent_blocks()) : tiles * Extent(plan_.parts);
        launch_.min_blocks_per_multiprocessor = plan_.residents;
        add_buffers();
    }
    /// Groups of multiprocessors hold whole clusters: of those that have no multiple of 16, some stay idle.
    int persistent_blocks() const {
        constexpr int group = 16;
        const int usable = plan_.row_blocks > 2 ? facts_.multiprocessors / group * group : facts_.multiprocessors;
        return usable * plan_.residents / plan_.row_blocks * plan_.row_blocks;
    }
    tile::Axis &axis(const std::string &name) {
        return *std::find_if(nest_.axes.begin(), nest_.axes.end(), [&](const tile::Axis &a) { return a.name == name; });
    }
    void add_buffers() {
        add_tile(plan_.operands.left);
        if (plan_.operands.left.value.defined()) {
            for (const tile::Buffer &registers : computed_operand_buffers(plan_.operands.left, plan_.operands.type, plan_.shape)) {
                launch_.buffers.push_back(registers);
            }
        }
        for (const MatrixOperand &right : plan_.operands.right) {
            add_tile(right);
        }
        if (plan_.shape.parts > 1) {
            add_shared("partials", plan_.operands.sum_type,
                       {plan_.shape.chunks * plan_.shape.width / 8, plan_.shape.warpgroups * ProductPlan::warpgroup, 4}, 1024)
                .overlays = plan_.operands.left.name;
        }
        add_shared("barriers", Halide::UInt(64), {2 * plan_.stages}, 0);
        if (plan_.right_stays) {
            add_shared("right_barriers", Halide::UInt(64), {2}, 0);
        }
        if (plan_.turns > 1) {
            add_shared("turns", Halide::UInt(64), {2 * plan_.turns}, 0);
        }
        for (std::size_t i = 0; i < products_.size(); ++i) {
            add_sums(plan_.sums_name(i), plan_.shape.parts);
            if (plan_.shape.parts > 1) {
                add_sums("whole_" + plan_.sums_name(i), 1);
            }
        }
    }
    void add_sums(const std::string &name, int parts) {
        launch_.buffers.push_back(
            tile::dense_buffer(name, {plan_.operands.sum_type}, tile::Memory::registers,
                               {plan_.shape.chunks, plan_.shape.strips() * parts, plan_.shape.blocks(), 2, plan_.shape.lanes}));
    }
    tile::Buffer &add_shared(const std::string &name, Halide::Type type, std::vector<Extent> extents, std::int64_t alignment) {
        tile::Buffer shared = tile::dense_buffer(name, {type}, tile::Memory::shared, std::move(extents));
        shared.alignment = alignment;
        shared.ordered = true;
        launch_.buffers.push_back(shared);
        return launch_.buffers.back();
    }
    void add_tile(const MatrixOperand &operand) {
        add_shared(operand.name, operand.read.type,
                   {(plan_.stays(operand) ? plan_.k_steps : Extent(plan_.stages)) * Extent(plan_.slot_tiles(operand)),
                    plan_.slot_rows(operand), plan_.row_elements(operand)},
                   1024);  // 1024 bytes: a swizzled atom
        tile::Buffer map;
        map.name = operand.name + "_map";
        map.types = {operand.read.type};
        map.memory = tile::Memory::descriptor;
        map.binding = tile::Buffer::Binding::input;
        map.index = operand.read.buffer.index;
        map.map.dtype = from_halide(operand.read.type);
        map.map.rounds_to_tf32 = operand.element == UnitElement::tf32;
        map.map.swizzle_bytes = plan_.row_elements(operand) * operand.read.type.bytes();
        if (operand.pixels) {
            operand.pixels->describe(map.map, plan_.slot_rows(operand), plan_.row_elements(operand));
        } else {
            describe_tiles(operand, map.map);
        }
        launch_.buffers.push_back(map);
        std::erase_if(launch_.buffers, [&](const tile::Buffer &b) {
            return b.memory == tile::Memory::global && b.name == operand.read.buffer.name && !is_read(b.name);
        });
    }
    void describe_tiles(const MatrixOperand &operand, TensorMapArgument &map) {
        for (const std::string &name : operand.coordinates) {
            map.sizes.push_back(name == plan_.operands.k ? ceil_div(axis(name).extent, operand.read.packing) : axis(name).extent);
            if (name != operand.coordinates[0]) {
                map.byte_strides.push_back(operand.read.stride(name) * Extent(operand.read.type.bytes()));
            }
            map.box.push_back(1);
        }
        map.box[0] = static_cast<std::uint32_t>(operand.transposed ? ProductPlan::chunk : plan_.row_elements(operand));
        map.box[1] = static_cast<std::uint32_t>(operand.transposed ? plan_.depth() : plan_.slot_rows(operand));
        map.element_offset = operand.read.offset;
    }
    /// Whether threads read the tensor too.
    bool is_read(const std::string &name) const { return other_reads_.count(name) > 0; }

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
    RowStages rows_;
    std::set<std::string> other_reads_;
    ProductPlan plan_;
    std::vector<tile::Buffer> partials_;
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

std::vector<tile::Launch> lower_tensor_core(const Kernel &kernel, const Placement &placement, int nest, const std::vector<int> &products,
                                            Storage &storage, const ScheduledKernel &schedule, const GpuFacts &facts) {
    return TensorCoreLowering(kernel, placement, nest, products, storage, schedule, facts).run();
}

}  // namespace tilewright
