// The device's scalar primitives against PyTorch's values over edge inputs: the data of the CPU target's test, the emitter's spelling.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "dsl/graph/dtype.h"
#include "lowering/cuda/compile.h"
#include "tests/support/gpu.h"
#include "tests/support/primitive_cases.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string type_name(DType type) {
    switch (type) {
        case DType::boolean:
            return "bool";
        case DType::float32:
            return "float";
        case DType::float64:
            return "double";
        case DType::float16:
            return "tw::half";
        case DType::bfloat16:
            return "tw::bfloat16";
        default:
            return fmt::format("tw::{}", name(type));
    }
}

std::string source_of(const std::vector<PrimitiveCase> &cases) {
    std::string text = "#include \"tilewright_device.h\"\n";
    for (std::size_t i = 0; i < cases.size(); i++) {
        const PrimitiveCase &c = cases[i];
        const bool binary = c.columns.size() == 3;
        const std::string function = c.op == "convert" ? "convert<" + type_name(c.result_type) + ">" : c.op;
        text += fmt::format("extern \"C\" __global__ void case_{}(tw::in<{}> x0, {}tw::out<{}> y, int n, tw::status *) {{\n", i,
                            type_name(c.type), binary ? fmt::format("tw::in<{}> x1, ", type_name(c.type)) : "", type_name(c.result_type));
        text += fmt::format("    const int i = threadIdx.x;\n    if (i < n) {{\n        y[i] = tw::{}(x0[i]{});\n    }}\n}}\n", function,
                            binary ? ", x1[i]" : "");
    }
    return text;
}

HostTensor column(DType dtype, const std::vector<std::uint64_t> &bits) {
    HostTensor tensor = HostTensor::zeros(dtype, {static_cast<std::int64_t>(bits.size())});
    for (std::size_t i = 0; i < bits.size(); i++) {
        std::memcpy(tensor.mutable_data() + i * size_in_bytes(dtype), &bits[i], size_in_bytes(dtype));
    }
    return tensor;
}

template<typename T> double value_of(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

/// Of a floating type. PyTorch's minimum of 0.0 and -0.0 is the first on the CPU and -0.0 on a GPU.
bool is_zero(DType type, std::uint64_t bits) { return is_floating_point(type) && (bits << 1 << (64 - 8 * size_in_bytes(type))) == 0; }

/// Units in the last place between two values; 0 where both are NaN.
double distance(DType type, std::uint64_t actual, std::uint64_t expected) {
    if (actual == expected) {
        return 0;
    }
    if (type == DType::bfloat16 || type == DType::float16) {
        const std::uint64_t infinity = type == DType::bfloat16 ? 0x7f80 : 0x7c00;
        return (actual & 0x7fff) > infinity && (expected & 0x7fff) > infinity ? 0 : INFINITY;
    }
    if (type != DType::float32 && type != DType::float64) {
        return INFINITY;
    }
    const bool narrow = type == DType::float32;
    const double a = narrow ? value_of<float>(actual) : value_of<double>(actual);
    const double e = narrow ? value_of<float>(expected) : value_of<double>(expected);
    if (std::isnan(a) && std::isnan(e)) {
        return 0;
    }
    if (!std::isfinite(a) || !std::isfinite(e) || std::signbit(a) != std::signbit(e)) {
        return INFINITY;
    }
    return std::fabs(static_cast<double>(static_cast<std::int64_t>(actual - expected)));
}

}  // namespace

TEST_CASE("device primitives have PyTorch's values") {
    const std::vector<PrimitiveCase> cases = read_primitive_cases();
    const std::string source = source_of(cases);
    for (std::size_t index = 0; index < cases.size(); index++) {
        const PrimitiveCase &c = cases[index];
        const std::vector<std::uint64_t> &expected = c.columns.back();
        std::vector<HostTensor> inputs;
        for (std::size_t k = 0; k + 1 < c.columns.size(); k++) {
            inputs.push_back(column(c.type, c.columns[k]));
        }
        std::vector<HostTensor> outputs = {HostTensor::zeros(c.result_type, {static_cast<std::int64_t>(expected.size())})};
        launch_on_test_gpu(source, fmt::format("case_{}", index), 1, static_cast<int>((expected.size() + 31) / 32 * 32), inputs, outputs,
                           static_cast<int>(expected.size()));
        double worst = 0;
        for (std::size_t i = 0; i < expected.size(); i++) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, outputs[0].data() + i * size_in_bytes(c.result_type), size_in_bytes(c.result_type));
            const bool either_zero = (c.op == "minimum" || c.op == "maximum") && is_zero(c.type, bits) && is_zero(c.type, expected[i]);
            const double off = either_zero ? 0 : distance(c.result_type, bits, expected[i]);
            if (off > c.ulps + 2) {  // libraries differ by a unit or two
                FAIL_CHECK(fmt::format("{} {} -> {} of {:#x}{}: got {:#x}, expected {:#x}", c.op, name(c.type), name(c.result_type),
                                       c.columns[0][i], c.columns.size() == 3 ? fmt::format(", {:#x}", c.columns[1][i]) : "", bits,
                                       expected[i]));
            }
            worst = std::max(worst, off);
        }
        CHECK(worst <= c.ulps + 2);
    }
}

TEST_CASE("device primitives compile for the GPU") {
    if (std::string why; !have_cuda_compiler(&why)) {
        MESSAGE("skipped: " << why);
        return;
    }
    const std::vector<PrimitiveCase> cases = read_primitive_cases();
    CHECK(compile_cuda("primitives", source_of(cases), "sm_90a").functions.size() == cases.size());
}
