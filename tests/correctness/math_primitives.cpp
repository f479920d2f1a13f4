// Every scalar primitive against PyTorch's value over edge inputs, vectorised and alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "dsl/algorithm/math.h"
#include "dsl/schedule/builder.h"
#include "lowering/cpu/compile.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/primitive_cases.h"

using namespace tilewright;
using namespace tilewright::tests;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

HostTensor column(DType dtype, const std::vector<std::uint64_t> &bits) {
    HostTensor tensor = HostTensor::zeros(dtype, {static_cast<std::int64_t>(bits.size())});
    const int size = size_in_bytes(dtype);
    for (std::size_t i = 0; i < bits.size(); i++) {
        std::memcpy(tensor.mutable_data() + i * size, &bits[i], size);
    }
    return tensor;
}

std::uint64_t element(const HostTensor &tensor, std::size_t i) {
    const int size = size_in_bytes(tensor.meta.dtype);
    std::uint64_t bits = 0;
    std::memcpy(&bits, tensor.data() + i * size, size);
    return bits;
}

double as_double(DType type, std::uint64_t bits) {
    if (type == DType::float32) {
        float value = 0;
        std::memcpy(&value, &bits, 4);
        return value;
    }
    double value = 0;
    std::memcpy(&value, &bits, 8);
    return value;
}

bool is_nan(DType type, std::uint64_t bits) {
    switch (type) {
        case DType::bfloat16:
            return (bits & 0x7fff) > 0x7f80;
        case DType::float16:
            return (bits & 0x7fff) > 0x7c00;
        case DType::float32:
            return (bits & 0x7fffffff) > 0x7f800000;
        case DType::float64:
            return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
        default:
            return false;
    }
}

/// Distance in units of the last place; 0 where the representations agree or both are NaN.
double distance(DType type, std::uint64_t actual, std::uint64_t expected) {
    if (actual == expected || (is_nan(type, actual) && is_nan(type, expected))) {
        return 0;
    }
    if (type != DType::float32 && type != DType::float64) {
        return INFINITY;
    }
    const double a = as_double(type, actual), e = as_double(type, expected);
    if (!std::isfinite(a) || !std::isfinite(e) || std::signbit(a) != std::signbit(e)) {
        return INFINITY;
    }
    return std::fabs(double(std::int64_t(actual - expected)));
}

Kernel kernel_of(const PrimitiveCase &c) {
    KernelBuilder builder(c.op);
    const Extent count(static_cast<std::int64_t>(c.columns[0].size()));
    Var i("d0");
    std::vector<Expr> operands;
    for (std::size_t column = 0; column + 1 < c.columns.size(); column++) {
        operands.push_back(read(builder.input("x" + std::to_string(column), c.type, {count}), {i}));
    }
    Func y = named_func("y");
    const Halide::Type type = to_halide(c.type);
    const bool is_test = c.result_type == DType::boolean;
    if (c.op == "convert") {
        y(i) = math::convert(to_halide(c.result_type), operands[0]);
    } else {
        y(i) = math::call(is_test ? Halide::Bool() : type, c.op, operands);
    }
    builder.stage(y, {count});
    builder.output("y");
    return builder.finish();
}

}  // namespace

TEST_CASE("primitives have PyTorch's values") {
    ScheduleBuilder vectorized;
    vectorized["y"].split("d0", "o", "i", 16).vectorize("i");
    for (const PrimitiveCase &c : read_primitive_cases()) {
        std::vector<HostTensor> inputs;
        for (std::size_t column_index = 0; column_index + 1 < c.columns.size(); column_index++) {
            inputs.push_back(column(c.type, c.columns[column_index]));
        }
        const Kernel kernel = kernel_of(c);
        for (const Directives &directives : {Directives{}, vectorized.directives}) {
            const HostTensor result = run_on_cpu(kernel, directives, inputs)[0];
            double worst = 0;
            for (std::size_t i = 0; i < c.columns.back().size(); i++) {
                const double off = distance(c.result_type, element(result, i), c.columns.back()[i]);
                if (off > c.ulps) {
                    std::string arguments;
                    for (std::size_t k = 0; k + 1 < c.columns.size(); k++) {
                        arguments += fmt::format(" {:#x} ({})", c.columns[k][i], as_double(c.type, c.columns[k][i]));
                    }
                    FAIL_CHECK(fmt::format("{} {}{} of{}: got {:#x}, expected {:#x}", c.op, name(c.type),
                                           directives.empty() ? "" : " vectorised", arguments, element(result, i), c.columns.back()[i]));
                }
                worst = std::max(worst, off);
            }
            CHECK(worst <= c.ulps);
        }
    }
}
