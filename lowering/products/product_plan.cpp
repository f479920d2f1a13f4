#include "lowering/products/product_plan.h"

#include <algorithm>

#include "dsl/error.h"

namespace tilewright {

namespace {

constexpr int largest_width = 256;
constexpr int most_sums = 256;  // registers of a thread that hold sums

class ScheduleReader {
public:
    ScheduleReader(ProductPlan &plan, const Kernel &kernel, const Nest &nest, const Stage &stage, const ScheduledKernel &schedule,
                   Storage &storage, const GpuFacts &facts, const Refusal &refuse)
        : plan_(plan),
          kernel_(kernel),
          nest_(nest),
          stage_(stage),
          all_schedules_(schedule),
          schedule_(*schedule.find(stage.name())),
          storage_(storage),
          facts_(facts),
          refuse(refuse) {}

    void read_schedule() {
        MatrixOperand &left = plan_.operands.left;
        left.tile = static_cast<int>(tile_extent(nest_, left.rows));
        const ScheduleFlag *groups = schedule_.find_flag("warpgroups"), *pipeline = schedule_.find_flag("pipeline"),
                           *unit = schedule_.find_flag("tensor_core"), *raster = schedule_.find_flag("raster"),
                           *bounds = schedule_.find_flag("launch_bounds"), *split = schedule_.find_flag("split_blocks"),
                           *cluster = schedule_.find_flag("cluster");
        plan_.shape.rows = left.rows;
        plan_.shape.columns = plan_.operands.right.front().rows;
        plan_.shape.batch = plan_.operands.batch;
        plan_.shape.width = static_cast<int>(
            nest_.find_axis(plan_.shape.columns)->extent == Extent(1) ? unit->number(1) : tile_extent(nest_, plan_.shape.columns));
        plan_.shape.warpgroups = groups ? static_cast<int>(groups->number(0)) : 2;
        plan_.parts = split ? static_cast<int>(split->number(1)) : 1;
        (split ? plan_.shape.parts : plan_.row_blocks) = cluster ? static_cast<int>(cluster->number(0) * cluster->number(1)) : 1;
        plan_.stages = pipeline ? static_cast<int>(pipeline->number(1)) : 4;
        if (plan_.stages < 2) {
            refuse("with one stage nothing can be loaded while the unit multiplies", "give pipeline 2 stages or more");
        }
        plan_.raster = raster ? static_cast<int>(raster->number(0)) : 8;
        plan_.persistent = schedule_.find_flag("persistent") != nullptr;
        plan_.residents = bounds ? static_cast<int>(bounds->number(1)) : 1;
        if (const int threads = plan_.threads(); bounds && bounds->number(0) != threads) {
            refuse(fmt::format("its block has {} threads: {} warpgroups and the producer's", threads, plan_.shape.warpgroups),
                   fmt::format("write launch_bounds({}, {})", threads, plan_.residents));
        }
        plan_.sums_apart = schedule_.find_flag("sum_apart") != nullptr;
        for (MatrixOperand &right : plan_.operands.right) {
            right.tile = plan_.shape.width;
        }
        const int bytes = plan_.operands.type.bytes();
        if (unit->number(0) != ProductPlan::chunk || unit->number(2) != plan_.unit_depth()) {
            refuse(fmt::format("the unit of Hopper multiplies 64 rows, {} deep", plan_.unit_depth()),
                   fmt::format("write tensor_core(64, {}, {})", plan_.shape.width, plan_.unit_depth()));
        }
        if (left.value.defined() && (plan_.operands.right.size() > 1 || !is_unit_width(plan_.shape.width, bytes, true))) {
            refuse("its left operand is computed in registers",
                   "make the tile 8, 16, 32, 48, 64, 96, 128, 192 or 256 wide, for one product");
        }
        if (!is_unit_width(plan_.shape.width, bytes, false) || unit->number(1) != plan_.shape.width) {
            refuse(
                fmt::format("its tiles are {} wide", plan_.shape.width),
                fmt::format("split the output's columns by {} or 256, and give tensor_core the same number",
                            bytes == 2 ? "8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224" : "8, 16, 32, 64, 96, 128, 192"));
        }
        if (plan_.operands.right.front().transposed && plan_.shape.width % ProductPlan::chunk != 0) {
            refuse("an operand that runs along the columns is fetched 64 columns at a time", "make the tile's width a multiple of 64");
        }
        if (left.tile <= 0 || plan_.shape.warpgroups < 1 || plan_.shape.warpgroups > 3 ||
            left.tile % (ProductPlan::chunk * plan_.shape.warpgroups) != 0) {
            refuse(fmt::format("tiles {} high do not divide among {} warpgroups of 64 rows", left.tile, plan_.shape.warpgroups),
                   "split the output's rows by 64 times warpgroups, or a multiple");
        }
        if (plan_.operands.turned && left.tile > ProductPlan::chunk * plan_.shape.warpgroups) {
            refuse(fmt::format("{} of the output's columns are the rows of {} warpgroups", left.tile, plan_.shape.warpgroups),
                   "split those columns by 64 times warpgroups");
        }
        if (left.tile > largest_width) {
            refuse("a tile is at most 256 high", "split the output's rows by 256 or less");
        }
        plan_.shape.chunks = left.tile / (ProductPlan::chunk * plan_.shape.warpgroups);
        if (plan_.sums_apart && (bytes != 1 || !plan_.operands.sum_type.is_float())) {
            refuse("only sums of float8 products lose bits in the unit", "remove sum_apart()");
        }
        const int sums = plan_.shape.chunks * plan_.shape.width / 2 * static_cast<int>(plan_.operands.right.size()) +
                         (plan_.sums_apart ? plan_.shape.width / 2 : 0);
        if (sums > most_sums) {
            refuse(fmt::format("each thread would hold {} sums", sums), "make the tile smaller or add warpgroups");
        }
        check_registers();
        if (plan_.residents > 1 && plan_.free_bytes(facts_) < 0) {
            refuse(fmt::format("{} blocks of it do not fit in a multiprocessor's shared memory", plan_.residents),
                   "give pipeline fewer stages or launch_bounds fewer blocks");
        }
        check_groups();
        check_parts();
        if (schedule_.find_flag("take_turns")) {
            if (!plan_.persistent || left.value.defined()) {
                refuse("warpgroups take turns at tiles of persistent blocks whose operands the copy unit brings",
                       "add persistent(), or remove take_turns()");
            }
            plan_.turns = plan_.shape.warpgroups;
        }
        check_copies();
    }
    /// X.in(product), staged where a step begins: pixels come once for the taps inside. Staged where the tiles begin: all of its terms come
    /// once.
    void check_copies() {
        MatrixOperand &right = plan_.operands.right.front();
        for (const ScheduledStage &copy : all_schedules_.stages) {
            if (copy.copy_of.empty() || !copy.is_edited) {
                continue;
            }
            const auto give_up = [&](const std::string &cause, const std::string &repair) {
                schedule_error(copy.at_location, copy.name, cause, repair);
            };
            const std::string tensor =
                copy.copy_for == stage_.name() && kernel_.algorithm.find_input(copy.copy_of) ? storage_.input(copy.copy_of).name : "";
            if (copy.compute == ComputeLevel::at && copy.at_stage == stage_.name()) {
                take_window(copy, tensor, give_up);
                continue;
            }
            if (tensor.empty() || tensor != right.read.buffer.name || plan_.operands.right.size() > 1) {
                give_up("it is not the one right operand of the product on the matrix unit", "remove it: the pipeline brings it");
            }
            const bool at_tiles =
                copy.compute == ComputeLevel::at && copy.store_in == MemorySpace::shared && copy.at_stage != stage_.name();
            if (!at_tiles || !plan_.persistent) {
                give_up("all terms of an operand are staged where persistent blocks begin their tiles",
                        "add compute_at(output, axis) and store_in(shared), or remove it");
            }
            const bool one_tile = ceil_div(nest_.find_axis(plan_.shape.columns)->extent, plan_.shape.width) == Extent(1);
            const bool varies = std::any_of(plan_.shape.batch.begin(), plan_.shape.batch.end(),
                                            [&](const std::string &b) { return right.read.strides.count(b) > 0; });
            if (!one_tile || varies || !plan_.k_steps.is_constant()) {
                give_up("it is not the same for all tiles", "remove it: the pipeline brings it");
            }
            plan_.right_stays = true;
            if (plan_.free_bytes(facts_) < 0) {
                give_up(fmt::format("its {} bytes do not fit in shared memory beside the pipeline", plan_.staying_bytes()),
                        "give pipeline fewer stages, or remove it");
            }
        }
    }
    void take_window(const ScheduledStage &copy, const std::string &tensor, const Refusal &give_up) {
        MatrixOperand *windows = nullptr;
        for (MatrixOperand *operand : {&plan_.operands.left, &plan_.operands.right.front()}) {
            windows = operand->pixels && operand->read.buffer.name == tensor ? operand : windows;
        }
        const std::vector<std::string> &taps = plan_.operands.taps;
        const std::string tap = windows ? windows->pixels->space.front().tap : "";
        if (!windows || tap.empty() || copy.store_in != MemorySpace::shared || taps.empty() || taps.back() != tap) {
            give_up("it has no pixels that several taps share", "remove it: the pipeline brings it");
        }
        // Steps of the product run along channels, then taps; the innermost taps are what remains inside of the loop before them.
        const std::string outside = taps.size() > 1 ? taps[taps.size() - 2] : plan_.operands.k;
        if (const std::string axis = axis_of_loop(copy.at_axis); axis != outside) {
            give_up(fmt::format("the loop '{}' does not stand right outside of the innermost taps", copy.at_axis),
                    "name the loop of the taps before them, or of the channels where there are none");
        }
        const Extent &extent = nest_.find_axis(tap)->extent;
        if (!extent.is_constant()) {
            give_up("its taps are not constant", "remove it: the pipeline brings it");
        }
        if (const auto obstacle = windows->pixels->window_obstacle(tap, extent.value())) {
            give_up(obstacle->first, obstacle->second);
        }
        plan_.window = windows->pixels->window = tap;
        plan_.window_taps = static_cast<int>(windows->pixels->taps = extent.value());
        check_parts();
        if (plan_.free_bytes(facts_) < 0) {
            give_up("its tiles do not fit in shared memory", "give pipeline fewer stages, or remove it");
        }
    }
    /// The nest's axis of which a loop of the product is a part, or "".
    std::string axis_of_loop(const std::string &loop) const {
        for (const tile::Axis &axis : nest_.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (leaf.name == stage_.name() + "_" + loop || leaf.name == stage_.name() + "_" + loop + "_i") {
                    return axis.name;
                }
            }
        }
        return "";
    }
    /// A tile multiplies the channels of one group.
    void check_groups() {
        const MatrixOperand &left = plan_.operands.left, &right = plan_.operands.right.front();
        if (right.pixels && right.pixels->sharers > 1) {
            refuse("pixels in groups of channels are rows of the unit", "let the output run along its channels, or remove tensor_core");
        }
        if (left.pixels && left.pixels->sharers > 1 && left.pixels->sharers % plan_.shape.width != 0) {
            refuse(fmt::format("{} columns are no part of a group of {}", plan_.shape.width, left.pixels->sharers),
                   "make the tile's width a divisor of the group's channels");
        }
    }
    /// ptxas fits an instruction into what a thread has at launch: its sums, descriptors and what addresses take.
    void check_registers() {
        constexpr int beside_sums = 26;
        const int needed = plan_.shape.width / 2 + beside_sums, left = plan_.registers_at_launch(facts_);
        if (needed > left) {
            refuse(fmt::format("multiplying {} columns takes {} registers of a thread, and {} blocks of {} threads leave {}",
                               plan_.shape.width, needed, plan_.residents, plan_.threads(), left),
                   plan_.residents > 1 ? "give launch_bounds fewer blocks, or make the tile narrower"
                                       : "make the tile narrower, or give it fewer warpgroups");
        }
    }
    void check_parts() {
        plan_.k_steps = ceil_div(nest_.find_axis(plan_.operands.k)->extent, plan_.depth());
        for (const std::string &name : plan_.operands.taps) {
            plan_.k_steps = name == plan_.window ? plan_.k_steps : plan_.k_steps * nest_.find_axis(name)->extent;
        }
        if (plan_.shape.parts > 1 && plan_.shape.parts != plan_.parts) {
            refuse("a cluster's blocks share the terms of one tile",
                   fmt::format("write split_blocks and cluster({}, 1) together", plan_.parts));
        }
        if (plan_.parts == 1) {
            return;
        }
        if (plan_.persistent) {
            refuse("blocks that share a product's terms take one tile each", "remove persistent() or split_blocks");
        }
        if (plan_.shape.parts > facts_.largest_cluster || plan_.shape.width % (plan_.shape.parts * 8) != 0) {
            refuse(fmt::format("{} blocks of a cluster cannot each finish a share of {} columns", plan_.shape.parts, plan_.shape.width),
                   fmt::format("split the terms among at most {} blocks, a power of two",
                               std::min(facts_.largest_cluster, plan_.shape.width / 8)));
        }
        plan_.k_steps = ceil_div(plan_.k_steps, plan_.parts);
    }

private:
    ProductPlan &plan_;
    const Kernel &kernel_;
    const Nest &nest_;
    const Stage &stage_;
    const ScheduledKernel &all_schedules_;
    const ScheduledStage &schedule_;
    Storage &storage_;
    const GpuFacts &facts_;
    const Refusal &refuse;
};

}  // namespace

std::int64_t ProductPlan::slot_bytes() const {
    std::int64_t bytes = 0;
    const auto add = [&](const MatrixOperand &operand) {
        bytes += static_cast<std::int64_t>(slot_tiles(operand)) * slot_rows(operand) * row_elements(operand) * operand.read.type.bytes();
    };
    add(operands.left);
    if (!right_stays) {
        std::for_each(operands.right.begin(), operands.right.end(), add);
    }
    return bytes;
}
std::int64_t ProductPlan::free_bytes(const GpuFacts &facts) const {
    const std::int64_t share = facts.shared_per_multiprocessor / residents - facts.shared_reserved_per_block;
    return std::min(facts.shared_per_block, share) - slot_bytes() * stages - (right_stays ? staying_bytes() : 0) -
           2 * 8 * (stages + 1 + turns) - exchange_bytes - 1024;
}

void read_product_schedule(ProductPlan &plan, const Kernel &kernel, const Nest &nest, const Stage &stage, const ScheduledKernel &schedule,
                           Storage &storage, const GpuFacts &facts, const Refusal &refuse) {
    ScheduleReader(plan, kernel, nest, stage, schedule, storage, facts, refuse).read_schedule();
}

}  // namespace tilewright
