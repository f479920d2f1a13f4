#include "lowering/cpu/compile.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "dsl/error.h"
#include "lowering/cpu/build.h"
#include "lowering/cpu/final_pass.h"
#include "lowering/cpu/halide_messages.h"
#include "lowering/cpu/refuse_schedule.h"
#include "lowering/cpu/schedule.h"
#include "lowering/fusion/schedule_axes.h"

namespace tilewright {
namespace {

using Halide::Target;

/// A file in memory: Halide writes to a name only, and a full disk would end the process.
class ScratchFile {
public:
    ScratchFile() : descriptor_(memfd_create("tilewright", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", descriptor_)) {
        if (descriptor_ < 0 || access(path_.c_str(), W_OK) != 0) {
            user_error("no file can be made in memory ({}); free memory, and mount /proc", std::strerror(errno));
        }
    }
    ~ScratchFile() { close(descriptor_); }
    ScratchFile(const ScratchFile &) = delete;
    ScratchFile &operator=(const ScratchFile &) = delete;
    const std::string &path() const { return path_; }

    std::string read() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

private:
    int descriptor_;
    std::string path_;
};

/// Offsets within a tensor beyond 2^31 - 1 bytes need 64-bit indices.
bool is_large(const TensorMeta &meta, const SymbolRanges &symbols) {
    double span = size_in_bytes(meta.dtype);
    for (int i = 0; i < meta.rank(); i++) {
        const auto largest = [&](const Extent &extent) { return static_cast<double>(extent.bounds(symbols).max); };
        span = std::max(span, largest(meta.sizes[i]) * largest(meta.strides[i]) * size_in_bytes(meta.dtype));
    }
    return span > 2147483647.0;
}

bool needs_large_buffers(const Algorithm &algorithm) {
    const auto large = [&](const auto &tensor) { return is_large(tensor.meta, algorithm.symbols); };
    if (std::any_of(algorithm.inputs.begin(), algorithm.inputs.end(), large) ||
        std::any_of(algorithm.outputs.begin(), algorithm.outputs.end(), large)) {
        return true;
    }
    return std::any_of(algorithm.stages.begin(), algorithm.stages.end(), [&](const Stage &stage) {
        return is_large(TensorMeta::contiguous(DType::float64, stage.extents), algorithm.symbols);
    });
}

Target target_of(const Kernel &kernel, const HalideKernel &built) {
    Target target =
        Halide::get_host_target().with_feature(Target::NoRuntime).with_feature(Target::NoAsserts).with_feature(Target::NoBoundsQuery);
    if (needs_large_buffers(kernel.algorithm)) {
        target.set_feature(Target::LargeBuffers);
    }
    if (!built.has_relaxed_products) {
        target.set_feature(Target::StrictFloat);
    }
    return target;
}

std::string function_name(const Kernel &kernel) {
    std::string name = kernel.name;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return fmt::format("tw_{}_{}", name, kernel.hash.to_string());
}

struct Prepared {
    HalideKernel built;
    Halide::Module module;
};

/// Halide reports a schedule that it refuses as a user error of its own.
template<typename F> auto with_halide_errors(const Kernel &kernel, const Directives &directives, F &&work) {
    try {
        return work();
    } catch (const Halide::CompileError &error) {
        refuse_schedule(kernel, directives, error.what());
    } catch (const Halide::Error &error) {
        internal_error("kernel {}: {}", kernel.name, error.what());
    }
}

std::string packing_name(const Kernel &kernel, std::size_t index) { return fmt::format("{}_pack{}", function_name(kernel), index); }

std::vector<Halide::Argument> symbol_arguments(const HalideKernel &built) {
    std::vector<Halide::Argument> arguments;
    for (const std::string &symbol : built.symbols) {
        arguments.emplace_back(symbol, Halide::Argument::InputScalar, Halide::Int(32), 0, Halide::ArgumentEstimates{});
    }
    return arguments;
}

/// Code of its own for a packed tensor, in the kernel's object.
void add_packing(const Kernel &kernel, const HalideKernel &built, std::size_t index, const Target &target, Halide::Module &module) {
    std::vector<Halide::Argument> arguments = symbol_arguments(built);
    arguments.insert(arguments.begin(), built.packed[index]->source());
    Halide::Pipeline pipeline(built.packed[index]->packing());
    const Halide::Module packing =
        pipeline.compile_to_module(arguments, packing_name(kernel, index), target, Halide::LinkageType::ExternalPlusArgv);
    for (const Halide::Internal::LoweredFunc &function : packing.functions()) {
        module.append(function);
    }
}

Prepared lower(const Kernel &kernel, const Directives &directives) {
    log_halide_warnings();
    const ScheduledKernel scheduled = apply_directives(schedule_axes(kernel), directives, ScheduleTarget::cpu);
    HalideKernel built = build_kernel(kernel, scheduled);
    apply_schedule(scheduled, built);
    const Target target = target_of(kernel, built);
    Halide::Pipeline pipeline(built.outputs);
    pipeline.add_custom_lowering_pass(make_final_pass(built.outputs));
    Halide::Module module =
        pipeline.compile_to_module(built.arguments, function_name(kernel), target, Halide::LinkageType::ExternalPlusArgv);
    for (std::size_t i = 0; i < built.packed.size(); i++) {
        add_packing(kernel, built, i, target, module);
    }
    return {std::move(built), std::move(module)};
}

void add_symbols(const HalideKernel &built, CpuStep &step) {
    for (const std::string &symbol : built.symbols) {
        step.arguments.emplace_back(ScalarArgument{Extent::symbol(symbol), 4});
    }
}

/// The kernel's packed tensors count after its inputs and outputs.
int packed_tensor(const Kernel &kernel, std::size_t index) {
    return static_cast<int>(kernel.algorithm.inputs.size() + kernel.algorithm.outputs.size() + index);
}

Step packing_step(const Kernel &kernel, const HalideKernel &built, std::size_t index) {
    CpuStep step;
    step.code = 0;
    step.function = packing_name(kernel, index) + "_argv";
    step.arguments.emplace_back(BufferArgument{built.packed[index]->input(), false, std::nullopt});
    add_symbols(built, step);
    step.arguments.emplace_back(BufferArgument{packed_tensor(kernel, index), true, std::nullopt});
    Step result;
    result.kernel = kernel.name;
    result.action = std::move(step);
    return result;
}

Step step_of(const Kernel &kernel, const HalideKernel &built) {
    CpuStep step;
    step.code = 0;
    step.function = function_name(kernel) + "_argv";
    const int inputs = static_cast<int>(kernel.algorithm.inputs.size());
    for (int i = 0; i < inputs; i++) {
        step.arguments.emplace_back(BufferArgument{i, false, std::nullopt});
    }
    for (std::size_t i = 0; i < built.packed.size(); i++) {
        step.arguments.emplace_back(BufferArgument{packed_tensor(kernel, i), false, std::nullopt});
    }
    add_symbols(built, step);
    if (built.uses_status) {
        step.arguments.emplace_back(StatusArgument{});
    }
    for (const int output : built.output_order) {
        step.arguments.emplace_back(BufferArgument{inputs + output, true, std::nullopt});
    }
    Step result;
    result.kernel = kernel.name;
    result.action = std::move(step);
    return result;
}

}  // namespace

CompiledKernel compile_cpu(const Kernel &kernel, const Directives &directives) {
    return with_halide_errors(kernel, directives, [&] {
        Prepared prepared = lower(kernel, directives);
        const ScratchFile object;
        prepared.module.compile({{Halide::OutputFileType::object, object.path()}});
        const std::string image = object.read();
        CompiledKernel compiled;
        CodeObject code;
        code.name = kernel.name;
        const auto *bytes = reinterpret_cast<const std::byte *>(image.data());
        code.image.assign(bytes, bytes + image.size());
        compiled.code.push_back(std::move(code));
        for (std::size_t i = 0; i < prepared.built.packed.size(); i++) {
            compiled.intermediates.push_back(prepared.built.packed[i]->meta());
            compiled.steps.push_back(packing_step(kernel, prepared.built, i));
        }
        compiled.steps.push_back(step_of(kernel, prepared.built));
        return compiled;
    });
}

void check_cpu(const Kernel &kernel, const Directives &directives) {
    with_halide_errors(kernel, directives, [&] { lower(kernel, directives); });
}

std::string print_cpu_statement(const Kernel &kernel, const Directives &directives) {
    return with_halide_errors(kernel, directives, [&] {
        Prepared prepared = lower(kernel, directives);
        const ScratchFile statement;
        prepared.module.compile({{Halide::OutputFileType::stmt, statement.path()}});
        return statement.read();
    });
}

std::string cpu_features() { return Halide::get_host_target().to_string(); }

}  // namespace tilewright
