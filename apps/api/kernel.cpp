#include "apps/api/kernel.h"

#include <algorithm>

#include "apps/api/plain_funcs.h"
#include "dsl/error.h"
#include "lowering/assemble_plan.h"
#include "lowering/choose_schedules.h"
#include "lowering/compile_kernels.h"

namespace tilewright {

KernelProgram::KernelProgram(std::string name) : name_(std::move(name)) {}

Halide::ImageParam KernelProgram::input(const std::string &name, DType dtype, std::vector<Extent> sizes) {
    for (const TensorInput &other : algorithm_.inputs) {
        if (other.name() == name) {
            user_error("kernel {}: two inputs are called \"{}\"", name_, name);
        }
    }
    const Halide::ImageParam param(to_halide(dtype), static_cast<int>(sizes.size()), name);
    for (const Extent &size : sizes) {
        std::set<std::string> symbols;
        size.collect_symbols(symbols);
        for (const std::string &symbol : symbols) {
            algorithm_.symbols.try_emplace(symbol, SymbolRange{0, INT32_MAX});
        }
    }
    TensorInput tensor{param, TensorMeta::contiguous(dtype, std::move(sizes)), name};
    algorithm_.inputs.push_back(std::move(tensor));
    return param;
}

void KernelProgram::stage(Halide::Func func, std::vector<Extent> extents, std::vector<Extent> reduction_extents) {
    if (static_cast<int>(extents.size()) != func.dimensions()) {
        user_error("kernel {}: stage {} has {} arguments and {} extents were given", name_, func.name(), func.dimensions(), extents.size());
    }
    algorithm_.stages.push_back({std::move(func), std::move(extents), std::move(reduction_extents), name_, ""});
}

void KernelProgram::output(const Halide::Func &func, int tuple_index) {
    const Stage *stage = algorithm_.find_stage(func.name());
    if (!stage) {
        user_error("kernel {}: {} is no stage of it; call stage() before output()", name_, func.name());
    }
    if (tuple_index < 0 || tuple_index >= func.outputs()) {
        user_error("kernel {}: stage {} has {} values, there is no number {}", name_, func.name(), func.outputs(), tuple_index);
    }
    const std::string name = fmt::format("out{}", algorithm_.outputs.size());
    algorithm_.outputs.push_back(
        {name, func.name(), tuple_index, TensorMeta::contiguous(from_halide(func.types()[tuple_index]), stage->extents)});
}

Kernel KernelProgram::kernel() const {
    const Algorithm plain = with_plain_funcs(algorithm_);
    verify(plain);
    return {name_, structural_hash(plain), plain};
}

CompiledFunction KernelProgram::compile(const KernelSchedule &schedule, const Options &options) const {
    const Target target = choose_target(options);
    const Kernel made = kernel();
    Plan plan = plan_of_kernel(target.kind, target.device, made, compile_kernel(made, schedule, target));
    return CompiledFunction(target.kind == TargetKind::cpu ? make_cpu_executor(std::move(plan)) : make_cuda_executor(std::move(plan)));
}

CompiledFunction KernelProgram::compile(const Directives &directives, const Options &options) const {
    KernelSchedule schedule;
    schedule.name = name_;
    schedule.variants.emplace_back();
    schedule.variants[0].directives = directives;
    return compile(schedule, options);
}

CompiledFunction KernelProgram::compile(const Options &options) const {
    return compile(default_schedule(kernel(), choose_target(options), {}, options), options);
}

CompiledFunction KernelProgram::compile(const ScheduleFile &file, const Options &options) const {
    const std::string hash = kernel().hash.to_string();
    const auto entry = std::find_if(file.kernels.begin(), file.kernels.end(), [&](const KernelSchedule &k) { return k.algorithm == hash; });
    if (entry == file.kernels.end()) {
        user_error("kernel {}: the schedule file for {} has no entry with algorithm {}; tune the kernel again", name_, file.model, hash);
    }
    return compile(*entry, options);
}

}  // namespace tilewright
