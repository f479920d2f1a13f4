#include "lowering/cpu_schedules/transpose_schedule.h"

#include <algorithm>

#include "lowering/cpu_schedules/vector_axis.h"

namespace tilewright {

namespace hi = Halide::Internal;

namespace {

constexpr std::int64_t tile = 16;  ///< elements of four bytes that fill a line of the cache

bool is_long(const Extent &extent) { return extent.constant().value_or(tile) >= tile; }

/// The argument that alone is the read's place in some dimension, and along which the tensor's elements are neighbours; -1 for none.
int contiguous_argument(const Kernel &kernel, const Read &read, const std::vector<std::string> &arguments) {
    for (int i = 0; i < static_cast<int>(arguments.size()); i++) {
        if (stride_along(kernel, read, arguments[i]) == 1) {
            return i;
        }
    }
    return -1;
}

bool has_plain_places(const Read &read) {
    return std::all_of(read.indices.begin(), read.indices.end(),
                       [](const Halide::Expr &index) { return index.as<hi::Variable>() != nullptr; });
}

int dimension_of(const Read &read, const std::string &argument) {
    for (std::size_t i = 0; i < read.indices.size(); i++) {
        const auto *variable = read.indices[i].as<hi::Variable>();
        if (variable && variable->name == argument) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

int stored_argument(const Kernel &kernel, const Stage &stage) {
    for (const TensorOutput &output : kernel.algorithm.outputs) {
        if (output.stage == stage.name()) {
            for (int i = 0; i < stage.rank(); i++) {
                if (output.meta.strides[i].constant() == 1) {
                    return i;
                }
            }
            return -1;
        }
    }
    return stage.rank() - 1;
}

}  // namespace

std::optional<Transposition> find_transposition(const Kernel &kernel, const KeptStage &kept) {
    if (kept.form != Form::pointwise || kept.stage->rank() < 2 || widest_bits(kept) > 32) {
        return std::nullopt;
    }
    const std::vector<std::string> arguments = kept.stage->func.function().args();
    Transposition found;
    found.stored = stored_argument(kernel, *kept.stage);
    if (found.stored < 0 || !is_long(kept.stage->extents[found.stored])) {
        return std::nullopt;
    }
    const std::vector<Read> own = reads_of(*kept.stage);
    for (const Read &read : kept.reads) {
        const int argument = contiguous_argument(kernel, read, arguments);
        const std::optional<std::int64_t> across = stride_along(kernel, read, arguments[found.stored]);
        if (!read.from_input || argument < 0 || argument == found.stored || across == 0 || across == 1) {
            continue;
        }
        const auto same = [&](const Read &other) { return other.producer == read.producer; };
        const bool is_direct =
            std::count_if(own.begin(), own.end(), same) == 1 && std::count_if(kept.reads.begin(), kept.reads.end(), same) == 1;
        const bool fits = is_direct && has_plain_places(read) && is_long(kept.stage->extents[argument]);
        if (!fits || (found.read >= 0 && found.read != argument)) {
            return std::nullopt;
        }
        found.read = argument;
        found.tensors.push_back(&read);
    }
    return found.tensors.empty() ? std::nullopt : std::optional(found);
}

std::vector<std::string> schedule_transposition(const KeptStage &kept, const Transposition &transposition, ScheduleBuilder &builder) {
    const std::vector<std::string> arguments = kept.stage->func.function().args();
    const std::string stored = arguments[transposition.stored], read = arguments[transposition.read], stage = kept.stage->name();
    builder[stage].split(stored, stored + "o", stored + "i", tile).vectorize(stored + "i").split(read, read + "o", read + "i", tile);
    std::vector<std::string> outside;
    for (const std::string &argument : arguments) {
        if (argument != stored && argument != read) {
            outside.push_back(argument);
        }
    }
    outside.push_back(read + "o");
    outside.push_back(stored + "o");
    std::vector<DirectiveArgument> order = {stored + "i", read + "i"};
    order.insert(order.end(), outside.rbegin(), outside.rend());
    builder.directives.push_back({stage, "reorder", order, {}, {}});
    for (const Read *tensor : transposition.tensors) {
        const std::string row = "d" + std::to_string(dimension_of(*tensor, read));
        const std::string copy = tensor->producer + ".in(" + stage + ")";
        builder.directives.push_back({copy, "compute_at", {stage, stored + "o"}, {}, {}});
        builder[tensor->producer].in(stage).split(row, "po", "pi", tile).vectorize("pi");
        const std::string column = "d" + std::to_string(dimension_of(*tensor, stored));
        builder.directives.push_back({copy, "reorder", {"pi", "po", column}, {}, {}});
    }
    return outside;
}

}  // namespace tilewright
