#include "lowering/compile_kernels.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <mutex>
#include <spdlog/spdlog.h>
#include <thread>

#include "dsl/error.h"
#include "dsl/schedule/at_entry.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/cpu/compile.h"
#include "lowering/cuda/compile.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/schedule_axes.h"
#include "lowering/renumber_step.h"

namespace tilewright {
namespace {

CompiledKernel compile_for_gpu(const Kernel &kernel, const Directives &directives, const Target &target) {
    if (const Directive *engine = find_engine(directives)) {
        return compile_engine(kernel, *engine, *target.gpu);
    }
    CudaKernelCode emitted = lower_cuda(kernel, directives, *target.gpu);
    CompiledKernel compiled;
    compiled.code.push_back(compile_cuda(kernel.name, emitted.source, target.device).code);
    for (LaunchStep &launch : emitted.launches) {
        compiled.steps.push_back({kernel.name, {}, std::move(launch), {}, {}});
    }
    return compiled;
}

/// The conditions of a variant over the kernel's extents; empty where its constant extents rule it out.
std::optional<ExtentConditions> conditions_of(const KernelAxes &axes, const ScheduleVariant &variant) {
    ExtentConditions open;
    for (const ScheduleVariant::Comparison &comparison : variant.conditions) {
        const Extent extent = condition_extent(axes, comparison);
        if (!extent.is_constant()) {
            open.push_back({extent, comparison.op, comparison.value});
        } else if (!comparison.holds(extent.value())) {
            return std::nullopt;
        }
    }
    return open;
}

/// Appends a variant's code and steps to the kernel's.
void append(CompiledKernel &into, CompiledKernel variant, const ExtentConditions &when, const std::vector<ExtentConditions> &unless,
            int tensors) {
    const int intermediate_base = static_cast<int>(into.intermediates.size());
    const auto shift = [&](int &tensor) { tensor += tensor >= tensors ? intermediate_base : 0; };
    const Renumbering renumbering{static_cast<int>(into.code.size()), [&](BufferArgument &argument) { shift(argument.buffer); },
                                  [&](int &tensor, Extent &) { shift(tensor); }};
    for (Step &step : variant.steps) {
        step.when = when;
        step.unless = unless;
        renumber(step, renumbering);
        into.steps.push_back(std::move(step));
    }
    std::move(variant.code.begin(), variant.code.end(), std::back_inserter(into.code));
    std::move(variant.intermediates.begin(), variant.intermediates.end(), std::back_inserter(into.intermediates));
}

}  // namespace

CompiledKernel compile_kernel(const Kernel &kernel, const Directives &directives, const Target &target) {
    try {
        return target.kind == TargetKind::cpu ? compile_cpu(kernel, directives) : compile_for_gpu(kernel, directives, target);
    } catch (const Halide::Error &error) {  // which is no std::exception
        std::string message = error.what();
        std::replace(message.begin(), message.end(), '\n', ' ');
        internal_error("kernel {}: {}", kernel.name, message);
    }
}

CompiledKernel compile_kernel(const Kernel &kernel, const KernelSchedule &schedule, const Target &target) {
    const KernelAxes axes = schedule_axes(kernel);
    check_entry(axes, schedule, target.kind == TargetKind::cpu ? ScheduleTarget::cpu : ScheduleTarget::cuda);
    const int tensors = static_cast<int>(kernel.algorithm.inputs.size() + kernel.algorithm.outputs.size());
    CompiledKernel compiled;
    std::vector<ExtentConditions> earlier;
    for (const ScheduleVariant &variant : schedule.variants) {
        const std::optional<ExtentConditions> when = conditions_of(axes, variant);
        if (!when) {
            continue;
        }
        append(compiled, compile_kernel(kernel, variant.directives, target), *when, earlier, tensors);
        if (when->empty()) {
            break;  // it always holds: what follows never runs
        }
        earlier.push_back(*when);
    }
    internal_assert(!compiled.steps.empty(), "no variant of the schedule of \"{}\" fits its extents", kernel.name);
    return compiled;
}

std::vector<CompiledKernel> compile_kernels(std::span<const Kernel> kernels, std::span<const KernelSchedule> schedules,
                                            const Target &target, int jobs) {
    std::vector<CompiledKernel> compiled(kernels.size());
    std::exception_ptr first;
    std::mutex mutex;
    boost::asio::thread_pool pool(jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency()));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        boost::asio::post(pool, [&, k] {
            try {
                {
                    const std::lock_guard lock(mutex);
                    if (first) {
                        return;
                    }
                }
                compiled[k] = at_entry(schedules[k], [&] { return compile_kernel(kernels[k], schedules[k], target); });
                spdlog::trace("  compiled {}", kernels[k].name);
            } catch (...) {
                const std::lock_guard lock(mutex);
                first = first ? first : std::current_exception();
            }
        });
    }
    pool.join();
    if (first) {
        std::rethrow_exception(first);
    }
    return compiled;
}

}  // namespace tilewright
