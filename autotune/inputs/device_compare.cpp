#include "autotune/inputs/device_compare.h"

#include <cstring>

#include "autotune/inputs/compare.h"
#include "dsl/error.h"
#include "lowering/cuda/compile.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

constexpr int threads = 256;
constexpr int blocks_of_multiprocessor = 8;

/// Two passes: the largest finite magnitude that is expected, then the first element that is farther off than a share of it.
const char *source = R"(#include "tilewright_device.h"
using element = {type};
__device__ inline bool is_finite(float x) {{ return x - x == 0.0F; }}
__device__ inline bool differ(element a, element b, float allowed) {{
{differ}
}}
extern "C" __global__ void largest(tw::in<element> expected, tw::inout<float> result, tw::int64 count) {{
    const tw::int64 step = static_cast<tw::int64>(gridDim.x) * blockDim.x;
    float most = 0.0F;
    for (tw::int64 i = static_cast<tw::int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {{
        const float x = static_cast<float>(fabs(tw::convert<double>(expected[i])));
        most = is_finite(x) && x > most ? x : most;
    }}
    if (most > 0.0F) {{
        tw::atomic_combine(result, 0, most, [](float a, float b) {{ return a > b ? a : b; }});
    }}
}}
extern "C" __global__ void first_difference(tw::in<element> expected, tw::in<element> actual, tw::in<float> scale,
                                            tw::inout<tw::int64> result, tw::int64 count) {{
    const tw::int64 step = static_cast<tw::int64>(gridDim.x) * blockDim.x;
    const float allowed = scale[0] * {tolerance}F;
    for (tw::int64 i = static_cast<tw::int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {{
        if (differ(expected[i], actual[i], allowed)) {{
            tw::atomic_combine(result, 0, i, [](tw::int64 a, tw::int64 b) {{ return a < b ? a : b; }});
            return;
        }}
    }}
}}
)";

const char *differ_exactly = "    return a != b;";
const char *differ_in_value = R"(    const double x = tw::convert<double>(a), y = tw::convert<double>(b);
    if (x != x || y != y) {
        return (x != x) != (y != y);
    }
    return x != y && !(fabs(x - y) <= static_cast<double>(allowed));)";

std::string device_type(DType type) {
    switch (type) {
        case DType::float16:
            return "tw::half";
        case DType::bfloat16:
            return "tw::bfloat16";
        case DType::float8_e4m3fn:
            return "tw::float8_e4m3";
        case DType::float8_e5m2:
            return "tw::float8_e5m2";
        case DType::float32:
            return "float";
        case DType::float64:
            return "double";
        default:
            break;  // the others by their bits
    }
    switch (size_in_bytes(type)) {
        case 1:
            return "tw::uint8";
        case 2:
            return "tw::uint16";
        case 4:
            return "tw::uint32";
        case 8:
            return "tw::uint64";
        default:
            user_error("values of type {} cannot be compared", name(type));
    }
}

void launch(CUfunction function, const char *name, std::vector<CUdeviceptr> buffers, std::int64_t count, CUstream stream) {
    LaunchStep step;
    step.function = name;
    step.grid = {std::min<std::int64_t>((count + threads - 1) / threads, blocks_of_multiprocessor * cuda_device().multiprocessors), 1, 1};
    step.block = {threads, 1, 1};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        step.arguments.emplace_back(BufferArgument{static_cast<int>(i), false, {}});
    }
    step.arguments.emplace_back(ScalarArgument{count, 8});
    CudaLaunch(step, name, function, {}).enqueue({&buffers, nullptr, 0}, stream);
}

}  // namespace

const CudaModule &DeviceCompare::module_of(DType type) {
    const auto known = modules_.find(type);
    if (known != modules_.end()) {
        return known->second;
    }
    const std::string text = fmt::format(fmt::runtime(source), fmt::arg("type", device_type(type)),
                                         fmt::arg("differ", is_floating_point(type) ? differ_in_value : differ_exactly),
                                         fmt::arg("tolerance", fmt::format("{:.9e}", default_tolerance(type))));
    return modules_.emplace(type, CudaModule(compile_cuda("compare", text, cuda_device().architecture).code)).first->second;
}

std::optional<std::string> DeviceCompare::mismatch(const Tensor &expected, const Tensor &actual, CUstream stream) {
    const int bytes = size_in_bytes(expected.dtype);
    const std::int64_t count = span_bytes(expected.dtype, expected.sizes, expected.strides) / bytes;
    if (count == 0) {
        return std::nullopt;
    }
    const CudaDriver &driver = CudaDriver::get();
    const CudaModule &module = module_of(expected.dtype);
    const DeviceMemory scale(sizeof(float)), first(sizeof(std::int64_t));
    cuda_check(driver.memset8(scale.address(), 0, sizeof(float), stream), "clearing memory");
    cuda_check(driver.copy_to_device(first.address(), &count, sizeof count, stream), "copying a number");
    const auto address = [](const Tensor &tensor) { return reinterpret_cast<CUdeviceptr>(tensor.data); };
    if (is_floating_point(expected.dtype)) {
        launch(module.function("largest", 0, false), "largest", {address(expected), scale.address()}, count, stream);
    }
    launch(module.function("first_difference", 0, false), "first_difference",
           {address(expected), address(actual), scale.address(), first.address()}, count, stream);
    std::int64_t place = 0;
    cuda_check(driver.copy_to_host(&place, first.address(), sizeof place, stream), "reading a comparison");
    cuda_check(driver.stream_synchronize(stream), "comparing outputs");
    if (place == count) {
        return std::nullopt;
    }
    std::byte wanted[8], got[8];
    cuda_check(
        driver.copy_to_host(wanted, address(expected) + static_cast<CUdeviceptr>(place * bytes), static_cast<std::size_t>(bytes), stream),
        "reading a value");
    cuda_check(driver.copy_to_host(got, address(actual) + static_cast<CUdeviceptr>(place * bytes), static_cast<std::size_t>(bytes), stream),
               "reading a value");
    cuda_check(driver.stream_synchronize(stream), "reading values");
    return fmt::format("element {}: expected {}, got {}", place, read_element(expected.dtype, wanted), read_element(expected.dtype, got));
}

}  // namespace tilewright
