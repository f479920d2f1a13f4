#include "tests/support/emulated_kernel.h"
#include "lowering/cuda_schedules/default_schedule.h"

#include <cmath>
#include <cstring>
#include <map>

#include "autotune/inputs/float8_values.h"
#include "dsl/error.h"
#include "lowering/cuda/emulate.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "runtime/cpu/math.h"
#include "runtime/pixel_map.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/program_text.h"

namespace tilewright::tests {
namespace {

TensorMeta evaluated(TensorMeta meta, const SymbolValues &symbols) {
    for (auto *list : {&meta.sizes, &meta.strides}) {
        for (Extent &extent : *list) {
            extent = extent.evaluate(symbols);
        }
    }
    meta.offset = 0;
    return meta;
}

std::int64_t span_of(const TensorMeta &meta) {
    std::int64_t span = 1;
    for (int i = 0; i < meta.rank(); ++i) {
        if (meta.sizes[i].value() == 0) {
            return 0;
        }
        span += (meta.sizes[i].value() - 1) * meta.strides[i].value();
    }
    return span;
}

HostTensor allocate(const TensorMeta &meta, int fill) {
    HostTensor tensor = HostTensor::zeros(meta.dtype, {std::max<std::int64_t>(span_of(meta), 1)});
    std::memset(tensor.mutable_data(), fill, static_cast<std::size_t>(tensor.storage_bytes));
    tensor.meta = meta;
    return tensor;
}

float bfloat16_to_float(std::uint16_t bits) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

double element(const HostTensor &tensor, std::int64_t place) {
    const std::byte *at = tensor.data() + place * size_in_bytes(tensor.meta.dtype);
    const auto as = [&](auto sample) {
        std::memcpy(&sample, at, sizeof sample);
        return sample;
    };
    switch (tensor.meta.dtype) {
        case DType::float32:
            return as(float{});
        case DType::float64:
            return as(double{});
        case DType::bfloat16:
            return bfloat16_to_float(as(std::uint16_t{}));
        case DType::float16:
            return static_cast<double>(as(_Float16{}));
        case DType::int64:
            return static_cast<double>(as(std::int64_t{}));
        case DType::int32:
            return as(std::int32_t{});
        case DType::int16:
            return as(std::int16_t{});
        case DType::int8:
            return as(std::int8_t{});
        case DType::float8_e4m3fn:
        case DType::float8_e5m2:
            return float8_to_double(tensor.meta.dtype, as(std::uint8_t{}));
        default:
            return as(std::uint8_t{});
    }
}

void set_element(const HostTensor &tensor, std::int64_t place, float value) {
    std::byte *at = tensor.mutable_data() + place * size_in_bytes(tensor.meta.dtype);
    const auto put = [&](auto v) { std::memcpy(at, &v, sizeof v); };
    const long whole = std::labs(std::lround(value * 2)) % 2;
    switch (tensor.meta.dtype) {
        case DType::float32:
            put(value);
            break;
        case DType::float64:
            put(static_cast<double>(value));
            break;
        case DType::bfloat16: {
            std::uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            put(static_cast<std::uint16_t>(bits >> 16));
            break;
        }
        case DType::float16:
            put(static_cast<_Float16>(value));
            break;
        case DType::int64:
            put(static_cast<std::int64_t>(whole));
            break;
        case DType::int32:
            put(static_cast<std::int32_t>(whole));
            break;
        case DType::int16:
            put(static_cast<std::int16_t>(whole));
            break;
        case DType::int8:
            put(static_cast<std::int8_t>(std::lround(value * 20)));
            break;
        case DType::float8_e4m3fn:
        case DType::float8_e5m2:
            put(double_to_float8(tensor.meta.dtype, value));
            break;
        case DType::boolean:
            put(static_cast<std::uint8_t>(whole & 1));
            break;
        default:
            put(static_cast<std::uint8_t>(whole));
            break;
    }
}

tw::host::TensorMap tensor_map(const TensorMapArgument &argument, const std::vector<HostTensor> &tensors, const SymbolValues &symbols) {
    const HostTensor &tensor = tensors.at(argument.buffer);
    tw::host::TensorMap map;
    map.element_bytes = size_in_bytes(argument.dtype);
    map.begin = reinterpret_cast<unsigned char *>(const_cast<std::byte *>(tensor.data()));
    map.end = map.begin + span_of(tensor.meta) * map.element_bytes;
    map.base = map.begin + argument.element_offset.evaluate(symbols) * map.element_bytes;
    map.rank = static_cast<int>(rank_of(argument));
    map.swizzle_bytes = argument.swizzle_bytes;
    map.rounds_to_tf32 = argument.rounds_to_tf32;
    map.byte_strides[0] = map.element_bytes;
    for (int d = 0; d < map.rank; ++d) {
        map.sizes[d] = argument.sizes[d].evaluate(symbols);
        if (d < static_cast<int>(argument.box.size())) {
            map.box[d] = static_cast<unsigned>(argument.box[d]);
        }
        if (d > 0) {
            map.byte_strides[d] = argument.byte_strides[d - 1].evaluate(symbols);
        }
    }
    if (const auto windows = windows_of(argument)) {
        map.space = map.rank - 2;
        for (int d = 0; d < map.space; ++d) {
            map.first[d] = windows->lower_corner[d].evaluate(symbols);
            map.last[d] = windows->upper_corner[d].evaluate(symbols) + map.sizes[d + 1] - 1;
            map.steps[d] = windows->steps[d];
        }
    }
    return map;
}

}  // namespace

std::vector<HostTensor> run_emulated(const Kernel &kernel, const Directives &directives, const std::vector<HostTensor> &inputs,
                                     const SymbolValues &symbols, const GpuFacts &facts) {
    return run_emulated(kernel, lower_cuda(kernel, directives, facts), inputs, symbols);
}

std::vector<HostTensor> run_emulated(const Kernel &kernel, const CudaKernelCode &code, const std::vector<HostTensor> &inputs,
                                     const SymbolValues &symbols) {
    KernelSource source{kernel.name, code.source, {}};
    for (const LaunchStep &launch : code.launches) {
        source.functions.push_back(launch.function);
    }
    const EmulatedModule module({source});
    std::vector<HostTensor> tensors = inputs;
    for (const TensorOutput &output : kernel.algorithm.outputs) {
        tensors.push_back(allocate(evaluated(output.meta, symbols), 0xff));
    }
    IndexStatus status;
    std::map<int, std::vector<std::byte>> scratch;
    for (const LaunchStep &step : code.launches) {
        EmulatedLaunch launch;
        launch.function = step.function;
        for (int i = 0; i < 3; ++i) {
            launch.grid[i] = static_cast<unsigned>(step.grid[i].evaluate(symbols));
            launch.block[i] = static_cast<unsigned>(step.block[i]);
            launch.cluster[i] = static_cast<unsigned>(step.cluster[i]);
        }
        launch.dynamic_shared_bytes = step.dynamic_shared_bytes;
        launch.cooperative = step.cooperative;
        if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) {
            continue;
        }
        for (const StepArgument &argument : step.arguments) {
            if (const auto *buffer = std::get_if<BufferArgument>(&argument)) {
                const HostTensor &tensor = tensors.at(buffer->buffer);
                auto *start = const_cast<std::byte *>(tensor.data());
                launch.arguments.push_back(EmulatedBuffer{start, start, start + span_of(tensor.meta) * size_in_bytes(tensor.meta.dtype)});
            } else if (const auto *scalar = std::get_if<ScalarArgument>(&argument)) {
                launch.arguments.push_back(scalar->value.evaluate(symbols));
            } else if (const auto *piece = std::get_if<ScratchArgument>(&argument)) {
                std::vector<std::byte> &bytes = scratch[piece->slot];
                if (bytes.empty()) {
                    bytes.assign(piece->bytes.evaluate(symbols) + 16, piece->zeroed ? std::byte{0} : std::byte{0xff});
                }
                launch.arguments.push_back(EmulatedBuffer{bytes.data(), bytes.data(), bytes.data() + bytes.size() - 16});
            } else if (std::get_if<StatusArgument>(&argument)) {
                launch.arguments.push_back(EmulatedPointer{&status});
            } else {
                launch.arguments.push_back(tensor_map(std::get<TensorMapArgument>(argument), tensors, symbols));
            }
        }
        module.launch(launch);
    }
    if (status.site_plus_one != 0) {
        user_error("site {}: index {} is out of range for size {}", status.site_plus_one - 1, status.index, status.size);
    }
    return {tensors.begin() + static_cast<std::ptrdiff_t>(inputs.size()), tensors.end()};
}

std::vector<HostTensor> random_inputs(const Kernel &kernel, const SymbolValues &symbols, unsigned seed) {
    std::vector<HostTensor> inputs;
    for (const TensorInput &input : kernel.algorithm.inputs) {
        HostTensor tensor = allocate(evaluated(input.meta, symbols), 0);
        const std::vector<float> values = random_floats(span_of(tensor.meta), seed++);
        for (std::size_t i = 0; i < values.size(); ++i) {
            set_element(tensor, static_cast<std::int64_t>(i), values[i]);
        }
        inputs.push_back(tensor);
    }
    return inputs;
}

std::string first_difference(const std::vector<HostTensor> &actual, const std::vector<HostTensor> &expected, double tolerance) {
    for (std::size_t t = 0; t < expected.size(); ++t) {
        const TensorMeta &meta = expected[t].meta;
        const std::int64_t count = meta.elements().value();
        for (std::int64_t flat = 0; flat < count; ++flat) {
            std::int64_t rest = flat, place = 0, place_expected = 0;
            std::vector<Extent> index(meta.sizes.size());
            for (std::size_t d = meta.sizes.size(); d-- > 0;) {
                index[d] = rest % meta.sizes[d].value();
                rest /= meta.sizes[d].value();
                place += index[d].value() * actual[t].meta.strides[d].value();
                place_expected += index[d].value() * meta.strides[d].value();
            }
            const double a = element(actual[t], place), e = element(expected[t], place_expected);
            const bool narrow = meta.dtype == DType::bfloat16 || meta.dtype == DType::float16;
            const double allowed =
                is_floating_point(meta.dtype) ? (narrow ? std::max(tolerance, 0.01) : tolerance) * (1 + std::fabs(e)) : 0;
            if (!(std::fabs(a - e) <= allowed || a == e || (std::isnan(a) && std::isnan(e)))) {
                return fmt::format("output {} {}: {}, expected {}", t, to_string(index), a, e);
            }
        }
    }
    return "";
}

std::vector<Kernel> kernels_from(const char *lines) {
    Program program = program_from(lines);
    functionalize(program);
    decompose(program);
    FusionOptions options;
    options.mode = FusionMode::max;
    options.split_columns = true;
    return partition(translate(program).algorithm, options).kernels;
}

std::string check_emulated(const char *lines, const SymbolValues &symbols, double tolerance) {
    for (const Kernel &kernel : kernels_from(lines)) {
        const std::vector<HostTensor> inputs = random_inputs(kernel, symbols, 1);
        const std::vector<HostTensor> expected = run_on_cpu(kernel, {}, inputs, symbols);
        for (const bool plain : {false, true}) {
            const Directives directives = plain ? Directives() : default_cuda_schedule(kernel, gpu_facts("sm_90a"));
            const std::string difference = first_difference(run_emulated(kernel, directives, inputs, symbols), expected, tolerance);
            if (!difference.empty()) {
                return kernel.name + (plain ? " (no directives): " : ": ") + difference;
            }
        }
    }
    return "";
}

std::string check_scheduled(const std::string &lines, const std::function<std::optional<Directives>(const Kernel &)> &schedule,
                            const GpuFacts &facts, double tolerance) {
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        if (const auto directives = schedule(kernel)) {
            const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
            return first_difference(run_emulated(kernel, *directives, inputs, {}, facts), run_on_cpu(kernel, {}, inputs, {}), tolerance);
        }
    }
    return "no kernel is one for this schedule";
}

}  // namespace tilewright::tests
