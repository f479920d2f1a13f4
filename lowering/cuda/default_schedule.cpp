// Default schedules: what a kernel's shape and extents suggest on a GPU, as directives that the search may edit.
#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/schedule/builder.h"
#include "dsl/error.h"
#include "lowering/cuda/candidates.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda/product_schedule.h"
#include "lowering/cuda/register_tiles.h"
#include "lowering/cuda/row_layout.h"
#include "lowering/fusion/shape.h"

namespace tilewright {
namespace {

std::string argument(int i) { return "d" + std::to_string(i); }

class DefaultSchedule {
public:
    DefaultSchedule(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice)
        : kernel_(kernel), algorithm_(kernel.algorithm), facts_(facts), choice_(choice), info_(kernel_shape(kernel.algorithm)) {}

    Directives run() {
        if (choice_.fuse_rows && (info_.shape == KernelShape::rows || info_.shape == KernelShape::mixed)) {
            schedule_rows();
        }
        if (choice_.product >= 0) {
            schedule_products();
        }
        // Readers first: they may take what they read along.
        for (auto stage = algorithm_.stages.rbegin(); stage != algorithm_.stages.rend(); ++stage) {
            const StageRole &role = info_.role(stage->name());
            if (!done_.count(stage->name()) && is_root(*stage, role)) {
                schedule_alone(*stage, role.form);
            }
        }
        return std::move(builder_.directives);
    }

private:
    bool is_root(const Stage &stage, const StageRole &role) const {
        return role.is_output || stage.func.function().has_update_definition() || stage.func.function().has_extern_definition();
    }

    /// Products and convolutions: tiles of sums in registers, or a stream of the large operand where the other has few rows.
    void schedule_products() {
        for (const Stage &stage : algorithm_.stages) {
            const Form form = info_.role(stage.name()).form;
            auto product = form == Form::contraction || form == Form::window ? match_register_product(kernel_, stage.name()) : std::nullopt;
            if (!product || done_.count(stage.name())) {
                continue;
            }
            // One that another stage of the kernel depends on in another way keeps a pass of its own.
            std::erase_if(product->outputs, [&](const std::string &output) { return !choice_.fuse_rows || done_.count(output) > 0; });
            const auto streams = stream_tiles(*product, algorithm_.symbols, facts_);
            const auto tiles = streams.empty() ? register_tiles(*product, algorithm_.symbols, facts_) : std::vector<RegisterTile>();
            const std::size_t count = streams.size() + tiles.size();
            if (count == 0) {
                continue;
            }
            const std::size_t chosen = std::min<std::size_t>(choice_.product, count - 1);
            const int parts = streams.empty() ? tiles[chosen].parts : streams[chosen].parts;
            streams.empty() ? schedule_register_tile(*product, tiles[chosen], builder_.directives)
                            : schedule_stream(*product, streams[chosen], algorithm_.symbols, builder_.directives);
            done_.insert(stage.name());
            if (parts == 1) {
                done_.insert(product->outputs.begin(), product->outputs.end());
            }
        }
    }

    void schedule_alone(const Stage &stage, Form form) {
        switch (form) {
            case Form::pointwise:
            case Form::gather: schedule_flat(stage); break;
            case Form::reduction: schedule_reduction(stage); break;
            case Form::contraction:
            case Form::window: schedule_window(stage); break;
            case Form::scan: schedule_scan(stage); break;
            case Form::scatter:
            case Form::sort: break;
        }
    }

    /// Fuses arguments [from, to) and gives the name of the loop.
    std::string fuse_arguments(const Stage &stage, int from, int to, const std::string &name) {
        if (from >= to) {
            return "";
        }
        std::string fused = argument(from);
        for (int i = from + 1; i < to; ++i) {
            const std::string next = i + 1 == to ? name : name + std::to_string(i);
            builder_[stage.name()].fuse(fused, argument(i), next);
            fused = next;
        }
        return fused;
    }

    /// Arguments from the largest stride of where the stage is stored to the smallest: neighbouring threads write neighbours.
    std::vector<std::string> memory_order(const Stage &stage) {
        std::vector<int> order(stage.rank());
        for (int i = 0; i < stage.rank(); ++i) {
            order[i] = i;
        }
        for (const TensorOutput &output : algorithm_.outputs) {
            const std::vector<Extent> &strides = output.meta.strides;
            if (output.stage == stage.name() && std::all_of(strides.begin(), strides.end(), [](const Extent &e) { return e.is_constant(); })) {
                std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a].value() > strides[b].value(); });
                break;
            }
        }
        std::vector<std::string> names;
        bool moved = false;
        for (int i = 0; i < stage.rank(); ++i) {
            names.push_back(argument(order[i]));
            moved = moved || order[i] != i;
        }
        if (moved) {
            Directive reorder{stage.name(), "reorder", {}, {}, {}};
            reorder.arguments.assign(names.rbegin(), names.rend());
            builder_.directives.push_back(reorder);
        }
        return names;
    }
    std::string fuse_names(const Stage &stage, const std::vector<std::string> &names, const std::string &name) {
        if (names.empty()) {
            return "";
        }
        std::string fused = names[0];
        for (std::size_t i = 1; i < names.size(); ++i) {
            const std::string next = i + 1 == names.size() ? name : name + std::to_string(i);
            builder_[stage.name()].fuse(fused, names[i], next);
            fused = next;
        }
        return fused;
    }

    /// Whether the stage reads some tensor at neighbouring places along an axis, through inlined stages.
    bool is_stencil(const Stage &stage) const {
        std::set<std::string> seen;
        std::vector<std::string> pending{stage.name()};
        std::map<std::string, std::vector<std::vector<Halide::Expr>>> places;
        while (!pending.empty()) {
            const Stage *at = algorithm_.find_stage(pending.back());
            pending.pop_back();
            if (!at || !seen.insert(at->name()).second || at->func.function().has_update_definition() || at->func.function().has_extern_definition()) {
                continue;
            }
            std::map<std::string, int> own;
            for (const Read &read : reads_of(*at)) {
                const std::string key = read.producer + "/" + std::to_string(read.tuple_index);
                if (!read.indices.empty() && (++own[key] > 1 || makes_window(places[key], read.indices))) {
                    return true;
                }
                if (!read.from_input) {
                    pending.push_back(read.producer);
                }
            }
        }
        return false;
    }
    /// Adds a place; whether three of them now lie within a few elements of each other. Slices are stages of their own: each reads one place.
    static bool makes_window(std::vector<std::vector<Halide::Expr>> &places, const std::vector<Halide::Expr> &place) {
        constexpr std::int64_t reach = 16, least = 3;
        std::int64_t near = 1;
        for (const std::vector<Halide::Expr> &other : places) {
            bool same = true, close = other.size() == place.size();
            for (std::size_t i = 0; close && i < place.size(); ++i) {
                const Halide::Expr difference = Halide::Internal::simplify(place[i] - other[i]);  // keeps the node alive
                const auto *distance = difference.as<Halide::Internal::IntImm>();
                close = distance && std::abs(distance->value) <= reach;
                same = same && close && distance->value == 0;
            }
            if (close && same) {
                return false;
            }
            near += close;
        }
        places.push_back(place);
        return near >= least;
    }

    /// Neighbouring threads along the last axis, several lines a thread: what the lines share is loaded once.
    void schedule_stencil(const Stage &stage, std::vector<std::string> names) {
        constexpr std::int64_t lines = 8;
        const std::int64_t threads = choice_.threads > 0 ? choice_.threads : 256;
        StageSchedule s = builder_[stage.name()];
        const std::string inner = names.back(), line = names[names.size() - 2];
        names.resize(names.size() - 2);
        s.split(inner, "block", "thread", threads);
        s.split(line, "lines", "line", choice_.steps > 0 ? choice_.steps : lines).unroll("line");
        Directive order{stage.name(), "reorder", {std::string("line"), std::string("thread"), std::string("block"), std::string("lines")}, {}, {}};
        builder_.directives.push_back(order);
        const std::string rest = fuse_names(stage, names, "planes");
        rest.empty() ? s.gpu_blocks("block", "lines") : s.gpu_blocks("block", "lines", rest);
        s.gpu_threads("thread");
        bound(s, threads);
    }

    /// All elements in a row: vectors, threads, blocks. A product or window that only this stage reads is computed on the way.
    void schedule_flat(const Stage &stage) {
        const std::vector<std::string> names = memory_order(stage);
        if (names.empty()) {
            return;
        }
        if (names.size() >= 2 && is_stencil(stage)) {
            schedule_stencil(stage, names);
            return;
        }
        if (schedule_transpose(stage, names)) {
            return;
        }
        const std::string flat = fuse_names(stage, names, "flat");
        const std::size_t tensors = algorithm_.inputs.size() + algorithm_.outputs.size();
        const std::int64_t widest = tensors > 24 ? 2 : tensors > 12 ? 4 : 8;  // a vector of each tensor is held in registers
        const std::int64_t width = std::min(widest, chosen_width(vector_width(algorithm_, stage, product(stage.extents))));
        StageSchedule s = builder_[stage.name()];
        std::string outer = flat;
        if (width > 1) {
            s.split(flat, "vectors", "lane", width).vectorize("lane");
            outer = "vectors";
        }
        const std::int64_t threads = choice_.threads > 0 ? choice_.threads : 256;
        if (choice_.steps > 1) {
            s.split(outer, "block", "piece", threads * choice_.steps).split("piece", "step", "thread", threads);
            s.unroll("step").gpu_blocks("block").gpu_threads("thread");
        } else {
            s.split(outer, "block", "thread", threads).gpu_blocks("block").gpu_threads("thread");
        }
        bound(s, threads);
        for (const std::string &window : windows_on_the_way(stage)) {
            builder_[window].compute_at(stage.name(), "block");
            done_.insert(window);
        }
        share_pass(stage);
    }

    /// Other outputs of the same space are written in the same pass.
    void share_pass(const Stage &stage) {
        if (!choice_.fuse_rows) {
            return;
        }
        for (const Stage &other : algorithm_.stages) {
            const StageRole &role = info_.role(other.name());
            const bool flat = role.form == Form::pointwise || role.form == Form::gather;
            if (&other == &stage || !role.is_output || !flat || done_.count(other.name()) || !(other.extents == stage.extents) || depends(other.name(), stage.name())) {
                continue;
            }
            StageSchedule s = builder_[other.name()];
            depends(stage.name(), other.name()) ? s.compute_at(stage.name(), "block") : s.compute_with(stage.name(), "block");
            done_.insert(other.name());
        }
    }

    /// The argument along which the tensor that this stage reads whole lies in memory; empty where it is read in several orders.
    std::string fast_argument(const Stage &stage) const {
        std::string result;
        for (const auto &[input, indices] : reads_through(stage)) {
            if (static_cast<int>(indices.size()) != input->meta.rank() || input->meta.rank() < stage.rank()) {
                continue;
            }
            for (int i = 0; i < input->meta.rank(); ++i) {
                if (input->meta.strides[i] == Extent(1) && !(input->meta.sizes[i] == Extent(1))) {
                    const auto *variable = indices[i].as<Halide::Internal::Variable>();
                    if (!variable || (!result.empty() && result != variable->name)) {
                        return "";
                    }
                    result = variable->name;
                }
            }
        }
        return result;
    }
    /// Reads of inputs through inlined stages that are read at permuted arguments, over this stage's arguments.
    std::vector<std::pair<const TensorInput *, std::vector<Halide::Expr>>> reads_through(const Stage &stage) const {
        std::vector<std::pair<const TensorInput *, std::vector<Halide::Expr>>> result;
        collect_reads(stage, {}, result, 0);
        return result;
    }
    void collect_reads(const Stage &stage, const std::map<std::string, Halide::Expr> &names,
                       std::vector<std::pair<const TensorInput *, std::vector<Halide::Expr>>> &into, int depth) const {
        for (const Read &read : reads_of(stage)) {
            std::vector<Halide::Expr> indices;
            for (const Halide::Expr &index : read.indices) {
                const auto *variable = index.as<Halide::Internal::Variable>();
                const auto found = variable ? names.find(variable->name) : names.end();
                indices.push_back(found == names.end() ? index : found->second);
            }
            if (read.from_input) {
                into.emplace_back(algorithm_.find_input(read.producer), indices);
            } else if (const Stage *producer = algorithm_.find_stage(read.producer); producer && depth < 64) {
                std::map<std::string, Halide::Expr> inner;
                for (std::size_t i = 0; i < indices.size(); ++i) {
                    inner[argument(static_cast<int>(i))] = indices[i];
                }
                collect_reads(*producer, inner, into, depth + 1);
            }
        }
    }

    /// Where the tensor that is read lies along another axis than the one that is written: squares of registers, wide accesses on both sides.
    bool schedule_transpose(const Stage &stage, const std::vector<std::string> &names) {
        const std::string fast = algorithm_.stages.size() <= 16 ? fast_argument(stage) : "";
        // The fast variable may be one that a stage on the way reduces along.
        if (fast == names.back() || choice_.vector == 1 || std::find(names.begin(), names.end(), fast) == names.end()) {
            return false;
        }
        const std::int64_t side = vector_width(algorithm_, stage, Extent(8));
        std::vector<std::string> after, before;
        bool passed = false;
        Extent run = 1;
        for (const std::string &name : names) {
            if (name == fast) {
                passed = true;
            } else {
                (passed ? after : before).push_back(name);
            }
        }
        for (const std::string &name : after) {
            run = run * stage.extents[std::stoi(name.substr(1))];
        }
        const Extent across = stage.extents[std::stoi(fast.substr(1))];
        if (after.empty() || side < 2 || !(mod(run, Extent(side)) == Extent(0)) || !(mod(across, Extent(side)) == Extent(0))) {
            return false;
        }
        const std::string along = fuse_names(stage, after, "along");
        StageSchedule s = builder_[stage.name()];
        s.split(along, "along_vectors", "lane", side).vectorize("lane").split("along_vectors", "along_block", "along_thread", 8);
        s.split(fast, "across_vectors", "square", side).unroll("square").split("across_vectors", "across_block", "across_thread", 16);
        const std::string rest = fuse_names(stage, before, "planes");
        Directive order{stage.name(), "reorder",
                        {std::string("lane"), std::string("square"), std::string("along_thread"), std::string("across_thread"), std::string("along_block"), std::string("across_block")},
                        {}, {}};
        builder_.directives.push_back(order);
        rest.empty() ? s.gpu_blocks("across_block", "along_block") : s.gpu_blocks("across_block", "along_block", rest);
        s.gpu_threads("along_thread", "across_thread");
        return true;
    }

    /// Windows and products of the stage's own space that nothing else reads.
    std::vector<std::string> windows_on_the_way(const Stage &stage) const {
        std::vector<std::string> result;
        for (const Stage &other : algorithm_.stages) {
            const StageRole &role = info_.role(other.name());
            const bool heavy = role.form == Form::window || role.form == Form::contraction;
            if (choice_.fuse_rows && heavy && !role.is_output && !done_.count(other.name()) && other.extents == stage.extents && depends(stage.name(), other.name())) {
                result.push_back(other.name());
            }
        }
        return result.size() == 1 ? result : std::vector<std::string>();
    }
    void bound(StageSchedule &s, std::int64_t threads) const {
        if (choice_.min_blocks > 0) {
            s.launch_bounds(threads, choice_.min_blocks);
        }
    }
    /// The search may ask for narrower accesses than are possible, never for wider ones.
    std::int64_t chosen_width(std::int64_t possible) const { return choice_.vector > 0 ? std::min(choice_.vector, possible) : possible; }

    /// Few terms: a thread for each element. Many: a block for each element.
    void schedule_reduction(const Stage &stage) {
        const auto fold = match_fold(stage.func);
        const bool ordered = fold && (fold->combiner == Combiner::general || fold->combiner == Combiner::last);
        const Extent terms = product(stage.reduction_extents);
        const std::int64_t smallest = terms.bounds(algorithm_.symbols).min;
        const int variables = static_cast<int>(stage.reduction_extents.size());
        if (ordered || smallest < 128) {
            schedule_window(stage);
            return;
        }
        StageSchedule s = builder_[stage.name()];
        if (keeps_innermost(stage)) {
            schedule_columns(stage);
            return;
        }
        const std::string rows = fuse_arguments(stage, 0, stage.rank(), "rows");
        if (!rows.empty()) {
            s.gpu_blocks(rows);
        }
        std::string inner = fuse_variables(stage, variables);
        const std::int64_t width = chosen_width(vector_width(algorithm_, stage, terms));
        if (width > 1) {
            s.split(inner, "vectors", "lane", width).vectorize("lane");
            inner = "vectors";
        }
        const std::int64_t threads = choice_.threads > 0 ? choice_.threads : 256;
        s.split(inner, "step", "thread", threads).gpu_threads("thread").reduce_across("block");
        const std::int64_t blocks = std::max<std::int64_t>(product(stage.extents).bounds(algorithm_.symbols).max, 1);
        const std::int64_t steps = std::max<std::int64_t>(smallest / (threads * width), 1);
        const std::int64_t parts = choice_.parts > 0 ? choice_.parts : std::clamp<std::int64_t>(4 * facts_.multiprocessors / blocks, 1, std::max<std::int64_t>(steps / 8, 1));
        std::string serial = "step";
        if (steps / parts >= 8 && terms.is_constant()) {
            s.split("step", "round", "at_once", 4).unroll("at_once");
            s.reorder("at_once", "thread", "round");
            serial = "round";
        }
        if (parts > 1) {
            s.split_blocks(serial, parts);
        }
        share_reduction(stage, rows.empty() ? serial : rows);
    }

    /// Reductions of the same extents that do not wait for each other take one pass.
    void share_reduction(const Stage &stage, const std::string &place) {
        std::vector<std::string> together{stage.name()};
        for (const Stage &other : algorithm_.stages) {
            const auto fold = match_fold(other.func);
            const bool ordered = !fold || fold->combiner == Combiner::general || fold->combiner == Combiner::last;
            if (!choice_.fuse_rows || &other == &stage || info_.role(other.name()).form != Form::reduction || ordered || done_.count(other.name()) ||
                !(other.extents == stage.extents) || !(other.reduction_extents == stage.reduction_extents) || keeps_innermost(other)) {
                continue;
            }
            if (std::any_of(together.begin(), together.end(), [&](const std::string &name) { return depends(other.name(), name) || depends(name, other.name()); })) {
                continue;
            }
            together.push_back(other.name());
            builder_[other.name()].compute_with(stage.name(), place);
            done_.insert(other.name());
        }
        done_.insert(stage.name());
    }

    /// The first reduction variable runs fastest in memory; loops nest the other way round.
    std::string fuse_variables(const Stage &stage, int variables) {
        const auto rvars = stage.func.function().update(0).schedule().rvars();
        std::string fused = rvars[0].var;
        for (int i = 1; i < variables; ++i) {
            const std::string next = i + 1 == variables ? "terms" : "terms" + std::to_string(i);
            builder_[stage.name()].fuse(fused, rvars[i].var, next);
            fused = next;
        }
        return fused;
    }

    /// Whether neighbouring terms lie apart and neighbouring elements together: some read moves by one along the last argument.
    bool keeps_innermost(const Stage &stage) const {
        if (stage.rank() == 0 || stage.extents.back().bounds(algorithm_.symbols).max < 16) {
            return false;
        }
        for (const Read &read : reads_of(stage)) {
            const bool varies = std::any_of(read.indices.begin(), read.indices.end(), [&](const Halide::Expr &e) {
                for (const auto &rvar : stage.func.function().update(0).schedule().rvars()) {
                    if (mentions(e, rvar.var)) {
                        return true;
                    }
                }
                return false;
            });
            if (!varies) {
                continue;
            }
            const auto *variable = read.indices.empty() ? nullptr : read.indices.back().as<Halide::Internal::Variable>();
            if (variable && variable->name == argument(stage.rank() - 1)) {
                return true;
            }
        }
        return false;
    }

    /// Columns: neighbouring threads take neighbouring columns, rows are split over blocks until the machine is full.
    void schedule_columns(const Stage &stage) {
        const auto rvars = stage.func.function().update(0).schedule().rvars();
        StageSchedule s = builder_[stage.name()];
        const std::string columns = fuse_arguments(stage, 0, stage.rank(), "columns");
        const std::int64_t width = chosen_width(vector_width(algorithm_, stage, stage.extents.back()));
        std::string outer = columns;
        if (width > 1) {
            s.split(columns, "vectors", "lane", width).vectorize("lane");
            outer = "vectors";
        }
        s.split(outer, "block", "thread", 32).gpu_blocks("block");
        const std::string terms = fuse_variables(stage, static_cast<int>(rvars.size()));
        const Extent count = product(stage.reduction_extents);
        const std::int64_t wide_blocks = std::max<std::int64_t>(ceil_div(product(stage.extents), 32 * width).bounds(algorithm_.symbols).max, 1);
        const std::int64_t parts = choice_.parts > 0 ? choice_.parts : std::clamp<std::int64_t>(4 * facts_.multiprocessors / wide_blocks, 1, std::max<std::int64_t>(count.bounds(algorithm_.symbols).max / 64, 1));
        s.split(terms, "step", "share", 8).gpu_threads("thread", "share").reduce_across("block");
        std::string serial = "step";
        if (count.is_constant() && count.value() / (8 * parts) >= 16) {
            s.split("step", "round", "at_once", 4).unroll("at_once");
            serial = "round";
        }
        if (parts > 1) {
            s.split_blocks(serial, parts);
        }
    }

    void schedule_window(const Stage &stage) {
        const std::string flat = fuse_names(stage, memory_order(stage), "flat");
        if (!flat.empty()) {
            builder_[stage.name()].split(flat, "block", "thread", 256).gpu_blocks("block").gpu_threads("thread");
        }
    }

    /// Along the last axis: a block a row, vectors within a thread. Along another: a thread a line.
    void schedule_scan(const Stage &stage) {
        const auto fold = match_fold(stage.func);
        const int axis = fold->scan_axis, last = stage.rank() - 1;
        StageSchedule s = builder_[stage.name()];
        if (axis == last) {
            const std::string rows = fuse_arguments(stage, 0, last, "rows");
            if (!rows.empty()) {
                s.gpu_blocks(rows);
            }
            const std::int64_t width = vector_width(algorithm_, stage, stage.extents[last]);
            std::string outer = argument(last);
            if (width > 1) {
                s.split(outer, "vectors", "lane", width).vectorize("lane");
                outer = "vectors";
            }
            s.split(outer, "step", "thread", 256).gpu_threads("thread");
            return;
        }
        std::string before = fuse_arguments(stage, 0, axis, "before");
        const std::string after = fuse_arguments(stage, axis + 1, stage.rank(), "after");
        if (!before.empty()) {
            s.gpu_blocks(before);
        }
        s.split(after, "block", "thread", 128).reorder(argument(axis), "thread", "block").gpu_blocks("block").gpu_threads("thread");
    }

    // ---- Rows ----
    void schedule_rows() {
        const Stage *anchor = algorithm_.find_stage(info_.anchor);
        if (!anchor) {
            return;
        }
        const StageRole &role = info_.role(anchor->name());
        const int space = static_cast<int>(info_.space.size());
        const bool is_reduction = anchor->func.function().has_update_definition();
        // The reduced axes must be the innermost ones, in order.
        int rows = 0;
        while (rows < space && !info_.is_reduced[rows]) {
            ++rows;
        }
        for (int i = rows; i < space; ++i) {
            if (!info_.is_reduced[i]) {
                return;
            }
        }
        std::vector<std::string> names(space);
        for (int i = 0; i < static_cast<int>(role.axes.size()); ++i) {
            if (role.axes[i] >= 0) {
                names[role.axes[i]] = argument(i);
            }
        }
        if (is_reduction) {
            const auto rvars = anchor->func.function().update(0).schedule().rvars();
            for (int i = 0; i < static_cast<int>(role.reduction_axes.size()); ++i) {
                if (role.reduction_axes[i] >= 0) {
                    names[role.reduction_axes[i]] = rvars[i].var;
                }
            }
        }
        if (std::any_of(names.begin(), names.end(), [](const std::string &n) { return n.empty(); }) || space == rows) {
            return;
        }
        Extent length = 1;
        for (int i = rows; i < space; ++i) {
            length = length * info_.space[i];
        }
        std::vector<const Stage *> members;
        int kept = 0;
        bool columns = false;  // sums over the rows share the pass
        std::vector<std::string> sums;
        for (const Stage &stage : algorithm_.stages) {
            const StageRole &other = info_.role(stage.name());
            if (&stage == anchor || other.is_inlined) {
                continue;
            }
            const bool reduces_rows = std::any_of(other.reduction_axes.begin(), other.reduction_axes.end(), [&](int a) { return a >= 0 && a < rows; });
            const bool placed = std::all_of(other.axes.begin(), other.axes.end(), [](int a) { return a >= 0; });
            const bool reads_sum = std::any_of(sums.begin(), sums.end(), [&](const std::string &sum) { return depends(stage.name(), sum); });
            if (!placed || reads_sum || (reduces_rows && !is_column_sum(other, rows)) || (other.form != Form::pointwise && other.form != Form::gather && other.form != Form::reduction)) {
                continue;
            }
            members.push_back(&stage);
            columns = columns || reduces_rows;
            if (reduces_rows) {
                sums.push_back(stage.name());
            }
            kept += reduces_rows || (other.form != Form::reduction && static_cast<int>(other.axes.size()) == space);
        }
        StageSchedule s = builder_[anchor->name()];
        put_in_order(s, *anchor, names);
        std::string row = names.empty() || rows == 0 ? "" : names[0];
        for (int i = 1; i < rows; ++i) {
            const std::string next = i + 1 == rows ? "row" : "row" + std::to_string(i);
            s.fuse(row, names[i], next);
            row = next;
        }
        std::string column = names[rows];
        for (int i = rows + 1; i < space; ++i) {
            const std::string next = i + 1 == space ? "column" : "column" + std::to_string(i);
            s.fuse(column, names[i], next);
            column = next;
        }
        RowLayout layout = row_layout(length, chosen_width(vector_width(algorithm_, *anchor, length)), kept + 1, algorithm_.symbols);
        if (choice_.threads > 0 && length.is_constant()) {
            layout = row_layout_of(length, layout.vector, choice_.threads, choice_.rows_per_block);
        }
        if (layout.vector > 1) {
            s.split(column, "vectors", "lane", layout.vector).vectorize("lane");
            column = "vectors";
        }
        s.split(column, "step", "thread", layout.threads);
        if (layout.in_registers) {
            s.unroll("step");
        } else if (layout.steps >= 8) {
            // Several loads under way at once; the registers they take leave one row to a multiprocessor, so that rows stay in L2.
            s.split("step", "round", "at_once", 4).unroll("at_once");
        }
        if (columns && !row.empty()) {
            // Blocks stay and take row after row: each leaves one partial sum of its columns.
            Extent count = 1;
            for (int i = 0; i < rows; ++i) {
                count = count * info_.space[i];
            }
            const std::int64_t blocks = choice_.parts > 0 ? choice_.parts : std::max<std::int64_t>(2048 / (layout.threads * layout.rows_per_block), 1) * facts_.multiprocessors;
            const std::int64_t each = std::max<std::int64_t>((count.bounds(algorithm_.symbols).max + blocks - 1) / blocks, 1);
            s.split(row, "rows", "row_i", each).gpu_blocks("rows").gpu_threads("thread");
            row = "row_i";
        } else if (layout.rows_per_block > 1 && !row.empty()) {
            s.split(row, "rows", "row_in_block", layout.rows_per_block).gpu_blocks("rows").gpu_threads("thread", "row_in_block");
            row = "row_in_block";
        } else {
            if (!row.empty()) {
                s.gpu_blocks(row);
            }
            s.gpu_threads("thread");
        }
        if (is_reduction) {
            s.reduce_across(layout.threads <= 32 ? "warp" : "block");
        }
        bound(s, layout.threads * layout.rows_per_block);
        const std::string place = !row.empty() ? row : !layout.in_registers && layout.steps >= 8 ? "round" : "step";
        for (const Stage *stage : members) {
            StageSchedule m = builder_[stage->name()];
            depends(anchor->name(), stage->name()) ? m.compute_at(anchor->name(), place) : m.compute_with(anchor->name(), place);
            if (!stage->func.function().has_update_definition() && !info_.role(stage->name()).is_output) {
                m.store_in("register");
            }
            done_.insert(stage->name());
        }
        done_.insert(anchor->name());
    }

    /// A reduction over rows alone that keeps the row's whole length.
    bool is_column_sum(const StageRole &role, int rows) const {
        const bool keeps = static_cast<int>(role.axes.size()) == static_cast<int>(info_.space.size()) - rows;
        return keeps && std::all_of(role.reduction_axes.begin(), role.reduction_axes.end(), [&](int a) { return a >= 0 && a < rows; });
    }

    /// Loops in the order of the space: what is fused stands together.
    void put_in_order(StageSchedule &s, const Stage &anchor, const std::vector<std::string> &names) {
        std::vector<std::string> now;
        for (int i = 0; i < anchor.rank(); ++i) {
            now.push_back(argument(i));
        }
        if (anchor.func.function().has_update_definition()) {
            for (const auto &variable : anchor.func.function().update(0).schedule().rvars()) {
                now.push_back(variable.var);
            }
        }
        if (now != names && now.size() == names.size()) {
            Directive reorder{anchor.name(), "reorder", {}, {}, {}};
            reorder.arguments.assign(names.rbegin(), names.rend());
            builder_.directives.push_back(reorder);
        }
    }

    /// Whether `reader` is computed from `producer`.
    bool depends(const std::string &reader, const std::string &producer) const {
        std::vector<std::string> pending{reader};
        std::set<std::string> seen;
        while (!pending.empty()) {
            const std::string at = pending.back();
            pending.pop_back();
            const Stage *stage = algorithm_.find_stage(at);
            if (!stage || !seen.insert(at).second) {
                continue;
            }
            for (const Read &read : reads_of(*stage)) {
                if (!read.from_input && read.producer == producer && at != producer) {
                    return true;
                }
                if (!read.from_input) {
                    pending.push_back(read.producer);
                }
            }
        }
        return false;
    }

    const Kernel &kernel_;
    const Algorithm &algorithm_;
    const GpuFacts &facts_;
    ScheduleChoice choice_;
    KernelShapeInfo info_;
    ScheduleBuilder builder_;
    std::set<std::string> done_;
};

bool can_lower(const Kernel &kernel, const Directives &directives, const GpuFacts &facts) {
    try {
        lower_to_tiles(kernel, directives, facts);
        return true;
    } catch (const UserError &) {
        return false;
    }
}

/// Where the matrix unit would mostly multiply padding, reading the large operand once is all there is to do.
bool is_stream(const MatrixProduct &product, const SymbolRanges &symbols) {
    return std::min(product.m.bounds(symbols).max, product.n.bounds(symbols).max) <= 4;
}

}  // namespace

Directives schedule_for(const Kernel &kernel, const GpuFacts &facts, const ScheduleChoice &choice) {
    return DefaultSchedule(kernel, facts, choice).run();
}

Directives default_cuda_schedule(const Kernel &kernel, const GpuFacts &facts) {
    if (const auto product = match_matrix_product(kernel, facts); product && !is_stream(*product, kernel.algorithm.symbols)) {
        for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
            Directives directives = product_schedule(*product, tile);
            if (can_lower(kernel, directives, facts)) {
                return directives;
            }
        }
    }
    Directives fused = schedule_for(kernel, facts, {});
    if (can_lower(kernel, fused, facts)) {
        return fused;
    }
    for (const ScheduleChoice &choice : {ScheduleChoice{.product = 0, .fuse_rows = false}, ScheduleChoice{.product = -1}}) {
        const Directives other = schedule_for(kernel, facts, choice);
        if (other != fused && can_lower(kernel, other, facts)) {
            return other;
        }
    }
    // Rows that do not fit one nest: every stage with an update by itself.
    ScheduleChoice apart;
    apart.product = -1;
    apart.fuse_rows = false;
    Directives separate = schedule_for(kernel, facts, apart);
    return can_lower(kernel, separate, facts) ? separate : Directives();
}

std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts) {
    std::vector<Directives> candidates{default_cuda_schedule(kernel, facts)};
    const auto consider = [&](const ScheduleChoice &choice) {
        Directives directives = schedule_for(kernel, facts, choice);
        if (std::find(candidates.begin(), candidates.end(), directives) == candidates.end() && can_lower(kernel, directives, facts)) {
            candidates.push_back(std::move(directives));
        }
    };
    const KernelShape shape = kernel_shape(kernel.algorithm).shape;
    const bool multiplies = shape == KernelShape::contraction || shape == KernelShape::window;
    for (int i = 0; multiplies && i < 12; ++i) {
        consider({.product = i});
    }
    if (const auto product = match_matrix_product(kernel, facts)) {
        for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
            Directives directives = product_schedule(*product, tile);
            if (std::find(candidates.begin(), candidates.end(), directives) == candidates.end() && can_lower(kernel, directives, facts)) {
                candidates.push_back(std::move(directives));
            }
        }
        return candidates;
    }
    if (multiplies) {
        consider({.product = -1});
        for (const std::int64_t blocks : {1, 2, 3, 4}) {
            consider({.min_blocks = blocks});
        }
        return candidates;
    }
    for (const std::int64_t threads : {64, 128, 256, 512, 1024}) {
        for (const std::int64_t rows : {1, 2, 4, 8}) {
            for (const std::int64_t steps : {1, 2, 4}) {
                if (threads * rows <= 1024) {
                    consider({.threads = threads, .steps = steps, .rows_per_block = rows});
                }
            }
        }
    }
    for (const std::int64_t vector : {1, 2, 4}) {
        consider({.vector = vector});
    }
    for (const std::int64_t parts : {1, 2, 4, 8, 16, 32, 64, 132, 264}) {
        consider({.parts = parts});
    }
    for (const std::int64_t blocks : {1, 2, 3, 4, 6, 8}) {
        consider({.min_blocks = blocks});
    }
    consider({.fuse_rows = false});
    return candidates;
}

}  // namespace tilewright
