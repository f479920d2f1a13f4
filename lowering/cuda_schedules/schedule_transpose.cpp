#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>
#include <map>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda_schedules/row_layout.h"

namespace tilewright {
namespace {

using InputRead = std::pair<const TensorInput *, std::vector<Halide::Expr>>;

void collect_reads(const Algorithm &algorithm, const Stage &stage, const std::map<std::string, Halide::Expr> &names,
                   std::vector<InputRead> &into, int depth) {
    for (const Read &read : reads_of(stage)) {
        std::vector<Halide::Expr> indices;
        for (const Halide::Expr &index : read.indices) {
            const auto *variable = index.as<Halide::Internal::Variable>();
            const auto found = variable ? names.find(variable->name) : names.end();
            indices.push_back(found == names.end() ? index : found->second);
        }
        if (read.from_input) {
            into.emplace_back(algorithm.find_input(read.producer), indices);
        } else if (const Stage *producer = algorithm.find_stage(read.producer); producer && depth < 64) {
            std::map<std::string, Halide::Expr> inner;
            for (std::size_t i = 0; i < indices.size(); ++i) {
                inner[argument(static_cast<int>(i))] = indices[i];
            }
            collect_reads(algorithm, *producer, inner, into, depth + 1);
        }
    }
}

/// Reads of inputs through inlined stages that are read at permuted arguments, over this stage's arguments.
std::vector<InputRead> reads_through(const Algorithm &algorithm, const Stage &stage) {
    std::vector<InputRead> result;
    collect_reads(algorithm, stage, {}, result, 0);
    return result;
}

/// The argument along which the tensor that this stage reads whole lies in memory; empty where it is read in several orders.
std::string fast_argument(const Algorithm &algorithm, const Stage &stage) {
    std::string result;
    for (const auto &[input, indices] : reads_through(algorithm, stage)) {
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

/// Tensors that the stage reads along another argument than it is stored along.
std::vector<std::string> read_across(const ScheduleDraft &draft, const Stage &stage) {
    std::vector<std::string> names;
    for (const auto &[input, indices] : reads_through(draft.algorithm, stage)) {
        if (input->meta.rank() >= stage.rank() && std::find(names.begin(), names.end(), input->name()) == names.end()) {
            names.push_back(input->name());
        }
    }
    return names;
}

/// Sizes that no square of registers divides: tiles pass through shared memory, element by element, read along `fast` and written along the
/// last name. False where they are small or what is read is no tile.
bool schedule_shared_transpose(ScheduleDraft &draft, const Stage &stage, const std::vector<std::string> &names, const std::string &fast) {
    constexpr std::int64_t tile = 64, lines = 4, least = 16;
    const auto smallest = [&](const std::string &name) {
        return stage.extents[std::stoi(name.substr(1))].bounds(draft.algorithm.symbols).min;
    };
    const std::string along = names.back();
    const std::vector<std::string> tensors = read_across(draft, stage);
    if (!draft.choice.fuse_rows || tensors.size() != 1 || smallest(along) < least || smallest(fast) < least) {
        return false;
    }
    std::vector<std::string> others;
    for (const std::string &name : names) {
        if (name != fast && name != along) {
            others.push_back(name);
        }
    }
    StageSchedule s = draft.builder[stage.name()];
    s.split(along, "along_block", "along_thread", tile)
        .split(fast, "across_block", "across", tile)
        .split("across", "step", "across_thread", lines)
        .unroll("step");
    Directive order{stage.name(), "reorder", {}, {}, {}};
    for (const char *name : {"step", "along_thread", "across_thread", "along_block", "across_block"}) {
        order.arguments.push_back(std::string(name));
    }
    for (auto name = others.rbegin(); name != others.rend(); ++name) {
        order.arguments.push_back(*name);
    }
    draft.builder.directives.push_back(order);
    const std::string rest = draft.fuse_names(stage, others, "planes");
    rest.empty() ? s.gpu_blocks("along_block", "across_block") : s.gpu_blocks("along_block", "across_block", rest);
    s.gpu_threads("along_thread", "across_thread");
    draft.builder[tensors[0]].in(stage.name()).compute_at(stage.name(), "along_block").store_in("shared");
    return true;
}

/// Names of loops over tiles of a transpose: along what is stored, across it, and those of the planes.
struct TransposeLoops {
    std::string along, across, planes;
};

/// Squares of `side` by `side` a thread, by accesses of 16 bytes. `shared`: they are read from tiles in shared memory, filled along the
/// tensors' rows.
void schedule_squares(ScheduleDraft &draft, const Stage &stage, const TransposeLoops &loops, std::int64_t side,
                      const std::vector<std::string> &shared) {
    constexpr std::int64_t neighbours = 8;  // of 16 bytes: a line of 128
    const std::int64_t across = draft.choice.threads > 0 ? std::max<std::int64_t>(draft.choice.threads / neighbours, 1)
                                : shared.empty()         ? 2 * neighbours
                                                         : neighbours;
    StageSchedule s = draft.builder[stage.name()];
    s.split(loops.along, "along_vectors", "lane", side).vectorize("lane").split("along_vectors", "along_block", "along_thread", neighbours);
    s.split(loops.across, "across_vectors", "square", side)
        .unroll("square")
        .split("across_vectors", "across_block", "across_thread", across);
    s.reorder("lane", "square", "along_thread", "across_thread", "along_block", "across_block");
    loops.planes.empty() ? s.gpu_blocks("across_block", "along_block") : s.gpu_blocks("across_block", "along_block", loops.planes);
    s.gpu_threads("along_thread", "across_thread");
    if (!shared.empty() && draft.choice.min_blocks == 0) {
        s.launch_bounds(neighbours * across, 1);  // all loads of a thread under way at once
    }
    for (const std::string &tensor : shared) {
        draft.builder[tensor].in(stage.name()).compute_at(stage.name(), "along_block").store_in("shared").swizzle();
    }
}

/// Whether tiles of squares in shared memory are worth their while: whole lines of 128 bytes are read and written.
bool fills_lines(const ScheduleDraft &draft, const Extent &run, const Extent &across, std::int64_t side, std::size_t tensors) {
    constexpr std::int64_t neighbours = 8;
    constexpr std::size_t most_tensors = 2;
    const auto smallest = [&](const Extent &extent) { return extent.bounds(draft.algorithm.symbols).min; };
    return draft.choice.fuse_rows && tensors >= 1 && tensors <= most_tensors && smallest(run) >= neighbours * side &&
           smallest(across) >= neighbours * side;
}

}  // namespace

bool schedule_transpose(ScheduleDraft &draft, const Stage &stage, const std::vector<std::string> &names) {
    const std::string fast = draft.algorithm.stages.size() <= 16 ? fast_argument(draft.algorithm, stage) : "";
    // The fast variable may be one that a stage on the way reduces along.
    if (fast == names.back() || draft.choice.vector == 1 || std::find(names.begin(), names.end(), fast) == names.end()) {
        return false;
    }
    const std::int64_t side = vector_width(draft.algorithm, stage, Extent(8));
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
    if (after.empty()) {
        return false;
    }
    if (side < 2 || !(mod(run, Extent(side)) == Extent(0)) || !(mod(across, Extent(side)) == Extent(0))) {
        return schedule_shared_transpose(draft, stage, names, fast);
    }
    const std::string along = draft.fuse_names(stage, after, "along");
    const std::vector<std::string> tensors = read_across(draft, stage);
    const bool shared = fills_lines(draft, run, across, side, tensors.size());
    const TransposeLoops loops{along, fast, draft.fuse_names(stage, before, "planes")};
    schedule_squares(draft, stage, loops, side, shared ? tensors : std::vector<std::string>());
    return true;
}

}  // namespace tilewright
