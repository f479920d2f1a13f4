#include "tests/support/cpu_kernel.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "dsl/error.h"
#include "lowering/cpu/compile.h"
#include "runtime/cpu/loader.h"
#include "runtime/cpu/math.h"

namespace tilewright::tests {

Halide::ImageParam KernelBuilder::input(const std::string &name, DType dtype, std::vector<Extent> sizes, std::vector<Extent> strides) {
    TensorMeta meta = TensorMeta::contiguous(dtype, std::move(sizes));
    if (!strides.empty()) {
        meta.strides = std::move(strides);
    }
    Halide::ImageParam param(to_halide(dtype), meta.rank(), name);
    kernel_.algorithm.inputs.push_back({param, meta, name});
    return param;
}

void KernelBuilder::stage(const Halide::Func &func, std::vector<Extent> extents, std::vector<Extent> reduction_extents) {
    Stage stage;
    stage.func = func;
    stage.extents = std::move(extents);
    stage.reduction_extents = std::move(reduction_extents);
    stage.op = "test";
    kernel_.algorithm.stages.push_back(std::move(stage));
}

void KernelBuilder::output(const std::string &stage, int tuple_index, std::vector<Extent> strides) {
    const Stage *found = kernel_.algorithm.find_stage(stage);
    TensorOutput output;
    output.name = fmt::format("{}_out{}", stage, tuple_index);
    output.stage = stage;
    output.tuple_index = tuple_index;
    output.meta = TensorMeta::contiguous(from_halide(found->func.types()[tuple_index]), found->extents);
    if (!strides.empty()) {
        output.meta.strides = std::move(strides);
    }
    kernel_.algorithm.outputs.push_back(std::move(output));
}

Kernel KernelBuilder::finish() {
    verify(kernel_.algorithm);
    kernel_.hash = structural_hash(kernel_.algorithm);
    return kernel_;
}

namespace {

struct Buffer {
    halide_buffer_t buffer{};
    std::vector<halide_dimension_t> dimensions;
};

std::vector<std::int64_t> evaluate(const std::vector<Extent> &extents, const SymbolValues &symbols) {
    std::vector<std::int64_t> values;
    for (const Extent &extent : extents) {
        values.push_back(extent.evaluate(symbols));
    }
    return values;
}

std::unique_ptr<Buffer> buffer_for(const TensorMeta &meta, const SymbolValues &symbols, const std::byte *data) {
    auto result = std::make_unique<Buffer>();
    const std::vector<std::int64_t> sizes = evaluate(meta.sizes, symbols), strides = evaluate(meta.strides, symbols);
    for (std::size_t i = 0; i < sizes.size(); i++) {
        result->dimensions.emplace_back(0, static_cast<int>(sizes[i]), static_cast<int>(strides[i]));
    }
    result->buffer.type = to_halide(meta.dtype);
    result->buffer.dimensions = static_cast<int>(sizes.size());
    result->buffer.dim = result->dimensions.data();
    result->buffer.host = reinterpret_cast<std::uint8_t *>(const_cast<std::byte *>(data));
    return result;
}

constexpr std::int64_t guard = 64;  ///< elements behind an output, which no kernel may write

/// Storage for strides that may leave gaps, with a guard behind it.
HostTensor output_tensor(const TensorMeta &meta, const SymbolValues &symbols) {
    std::vector<std::int64_t> sizes = evaluate(meta.sizes, symbols), strides = evaluate(meta.strides, symbols);
    std::int64_t span = 1;
    for (std::size_t i = 0; i < sizes.size(); i++) {
        span = sizes[i] == 0 ? span : span + (sizes[i] - 1) * strides[i];
    }
    HostTensor tensor = HostTensor::zeros(meta.dtype, {span + guard});
    std::memset(tensor.mutable_data(), 0xff, tensor.storage_bytes);
    tensor.meta.sizes.assign(sizes.begin(), sizes.end());
    tensor.meta.strides.assign(strides.begin(), strides.end());
    return tensor;
}

void check_guard(const HostTensor &tensor) {
    const std::byte *end = tensor.storage.get() + tensor.storage_bytes;
    const bool is_whole =
        std::all_of(end - guard * size_in_bytes(tensor.meta.dtype), end, [](std::byte b) { return b == std::byte{0xff}; });
    internal_assert(is_whole, "the kernel wrote beyond its output {}", tensor.meta.to_string());
}

}  // namespace

std::vector<HostTensor> run_on_cpu(const Kernel &kernel, const Directives &directives, const std::vector<HostTensor> &inputs,
                                   const SymbolValues &symbols) {
    const CompiledKernel compiled = compile_cpu(kernel, directives);
    const CpuCode code = CpuCode::load(compiled.code[0].image, kernel.name);
    IndexStatus status;
    void *status_pointer = &status;
    // Numbered as the steps do: inputs, outputs, then what steps hand to each other.
    std::vector<HostTensor> tensors = inputs;
    std::vector<TensorMeta> metas;
    for (const TensorInput &input : kernel.algorithm.inputs) {
        metas.push_back(input.meta);
    }
    for (const TensorOutput &output : kernel.algorithm.outputs) {
        metas.push_back(output.meta);
        tensors.push_back(output_tensor(output.meta, symbols));
    }
    for (const TensorMeta &meta : compiled.intermediates) {
        metas.push_back(meta);
        tensors.push_back(output_tensor(meta, symbols));
    }
    for (const Step &compiled_step : compiled.steps) {
        const auto &step = std::get<CpuStep>(compiled_step.action);
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<std::unique_ptr<std::int32_t>> scalars;
        std::vector<void *> arguments;
        for (const StepArgument &argument : step.arguments) {
            if (const auto *buffer = std::get_if<BufferArgument>(&argument)) {
                buffers.push_back(buffer_for(metas[buffer->buffer], symbols, tensors[buffer->buffer].data()));
                arguments.push_back(&buffers.back()->buffer);
            } else if (const auto *scalar = std::get_if<ScalarArgument>(&argument)) {
                scalars.push_back(std::make_unique<std::int32_t>(static_cast<std::int32_t>(scalar->value.evaluate(symbols))));
                arguments.push_back(scalars.back().get());
            } else {
                arguments.push_back(&status_pointer);
            }
        }
        const int result = code.function(step.function)(arguments.data());
        internal_assert(result == 0, "kernel {} returned {}", kernel.name, result);
    }
    if (status.site_plus_one != 0) {
        user_error("site {}: index {} is out of range for size {}", status.site_plus_one - 1, status.index, status.size);
    }
    std::for_each(tensors.begin() + static_cast<std::ptrdiff_t>(inputs.size()), tensors.end(), check_guard);
    const auto first = tensors.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    return {first, first + static_cast<std::ptrdiff_t>(kernel.algorithm.outputs.size())};
}

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    for (float &value : values) {
        // Twelve uniform numbers: the standard library's normal distribution differs between implementations.
        double sum = -6;
        for (int i = 0; i < 12; i++) {
            sum += generator() / 4294967296.0;
        }
        value = static_cast<float>(sum);
    }
    return values;
}

double largest_error(const std::vector<float> &actual, const std::vector<float> &expected) {
    double largest = actual.size() == expected.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); i++) {
        const double difference = std::fabs(double(actual[i]) - expected[i]) / (1 + std::fabs(double(expected[i])));
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    return largest;
}

}  // namespace tilewright::tests
