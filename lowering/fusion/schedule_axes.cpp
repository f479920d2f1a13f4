#include "lowering/fusion/schedule_axes.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"

namespace tilewright {
namespace {

StageAxes axes_of(const TensorInput &input) {
    StageAxes axes;
    axes.name = input.name();
    axes.is_input = true;
    for (int i = 0; i < input.meta.rank(); ++i) {
        axes.axes.push_back({"d" + std::to_string(i), input.meta.sizes[i]});
    }
    return axes;
}

StageAxes axes_of(const Stage &stage, const Algorithm &algorithm) {
    StageAxes axes;
    axes.name = stage.name();
    const Halide::Internal::Function function = stage.func.function();
    for (int i = 0; i < stage.rank(); ++i) {
        axes.axes.push_back({function.args()[i], stage.extents[i]});
    }
    if (function.has_update_definition()) {
        const auto &variables = function.update(0).schedule().rvars();
        for (std::size_t i = 0; i < variables.size(); ++i) {
            axes.reduction_axes.push_back({variables[i].var, stage.reduction_extents.at(i)});
        }
    }
    for (const Read &read : reads_of(stage)) {
        if (std::find(axes.reads.begin(), axes.reads.end(), read.producer) == axes.reads.end()) {
            axes.reads.push_back(read.producer);
        }
    }
    axes.is_output =
        std::any_of(algorithm.outputs.begin(), algorithm.outputs.end(), [&](const TensorOutput &o) { return o.stage == stage.name(); });
    axes.is_inlinable = !function.has_update_definition() && !function.has_extern_definition();
    return axes;
}

}  // namespace

KernelAxes schedule_axes(const Kernel &kernel) {
    KernelAxes axes;
    axes.kernel = kernel.name;
    for (const TensorInput &input : kernel.algorithm.inputs) {
        axes.stages.push_back(axes_of(input));
    }
    for (const Stage &stage : kernel.algorithm.stages) {
        axes.stages.push_back(axes_of(stage, kernel.algorithm));
    }
    return axes;
}

}  // namespace tilewright
