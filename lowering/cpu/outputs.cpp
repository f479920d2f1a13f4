#include "lowering/cpu/outputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/cpu/buffer_constraints.h"
#include "lowering/cpu/func_values.h"

namespace tilewright {

using Halide::Func;

namespace {

const Stage &stage_of(const Algorithm &algorithm, const std::vector<int> &outputs) {
    const Stage *stage = algorithm.find_stage(algorithm.outputs[outputs.front()].stage);
    internal_assert(stage != nullptr, "the kernel has no stage {}", algorithm.outputs[outputs.front()].stage);
    return *stage;
}

/// The outputs are the elements of the stage's tuple, each once.
bool covers_stage(const Algorithm &algorithm, const std::vector<int> &outputs) {
    std::set<int> elements;
    for (const int output : outputs) {
        elements.insert(algorithm.outputs[output].tuple_index);
    }
    const Stage &stage = stage_of(algorithm, outputs);
    const bool once = elements.size() == outputs.size() && static_cast<int>(outputs.size()) == stage.func.outputs();
    return once && !stage.func.function().has_extern_definition();
}

/// Vectors of a reader in the kernel may reach beyond the extents, and Halide would compute the stage as far as they do: beyond the
/// caller's memory.
void keep_inside(const Algorithm &algorithm, Func func, const Stage &stage) {
    const bool is_read = std::any_of(algorithm.stages.begin(), algorithm.stages.end(), [&](const Stage &other) {
        const std::vector<Read> reads = other.name() == stage.name() ? std::vector<Read>() : reads_of(other);
        return std::any_of(reads.begin(), reads.end(), [&](const Read &read) { return !read.from_input && read.producer == stage.name(); });
    });
    for (int i = 0; is_read && i < stage.rank(); ++i) {
        func.bound(func.args()[static_cast<std::size_t>(i)], 0, to_halide(stage.extents[static_cast<std::size_t>(i)]));
    }
}

void store_directly(const Algorithm &algorithm, std::vector<int> outputs, HalideKernel &kernel) {
    std::sort(outputs.begin(), outputs.end(),
              [&](int a, int b) { return algorithm.outputs[a].tuple_index < algorithm.outputs[b].tuple_index; });
    Func func = kernel.stages.at(algorithm.outputs[outputs.front()].stage).func;
    const std::vector<Halide::OutputImageParam> buffers = func.output_buffers();
    for (std::size_t i = 0; i < outputs.size(); i++) {
        constrain(buffers[i], algorithm.outputs[outputs[i]].meta, i == 0);
        kernel.output_order.push_back(outputs[i]);
    }
    keep_inside(algorithm, func, stage_of(algorithm, outputs));
    kernel.outputs.push_back(func);
}

void copy_to_output(const Algorithm &algorithm, int index, HalideKernel &kernel) {
    const TensorOutput &output = algorithm.outputs[index];
    const Halide::Internal::Function source = kernel.stages.at(output.stage).func.function();
    Func copy = named_func(func_name(output.name + "_result"));
    copy.function().define(source.args(), {values_at(source, places_of(source))[output.tuple_index]});
    constrain(copy.output_buffer(), output.meta);
    kernel.output_order.push_back(index);
    kernel.outputs.push_back(copy);
    kernel.results.insert(copy.name());
    kernel.copied.insert(output.stage);
}

}  // namespace

void make_outputs(const Algorithm &algorithm, HalideKernel &kernel) {
    std::map<std::string, std::vector<int>> by_stage;
    for (std::size_t i = 0; i < algorithm.outputs.size(); i++) {
        by_stage[algorithm.outputs[i].stage].push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < algorithm.outputs.size(); i++) {
        const std::vector<int> &same = by_stage[algorithm.outputs[i].stage];
        if (!covers_stage(algorithm, same)) {
            copy_to_output(algorithm, static_cast<int>(i), kernel);
        } else if (same.front() == static_cast<int>(i)) {
            store_directly(algorithm, same, kernel);
        }
    }
}

}  // namespace tilewright
