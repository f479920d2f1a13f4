// What the measuring child does with plans of a GPU: times of right candidates, a reason for wrong ones, inputs that wrong ones cannot
// spoil.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "autotune/inputs/device_compare.h"
#include "autotune/measure/measurer.h"
#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "lowering/cuda/compile.h"
#include "runtime/plan_archive.h"
#include "tests/support/command.h"
#include "tests/support/gpu.h"

using namespace tilewright;

namespace {

/// picked[i] = x[index[i]], or what `statement` says.
std::string plan_file(const std::string &name, const std::string &statement) {
    const std::string source =
        "#include \"tilewright_device.h\"\nextern \"C\" __global__ void pick(tw::inout<float> x, tw::in<tw::int64> index, tw::out<float> "
        "y) {\n"
        "    const int i = threadIdx.x;\n    " +
        statement + "\n}\n";
    const auto buffer = [](PlanBuffer::Kind kind, const char *of, DType type, int index) {
        PlanBuffer result;
        result.kind = kind;
        result.name = of;
        result.meta = TensorMeta::contiguous(type, {64});
        result.index = index;
        return result;
    };
    Plan plan;
    plan.target = TargetKind::cuda;
    plan.device = "host";
    plan.buffers = {buffer(PlanBuffer::Kind::input, "x", DType::float32, 0), buffer(PlanBuffer::Kind::input, "index", DType::int64, 1),
                    buffer(PlanBuffer::Kind::output, "y", DType::float32, 0)};
    plan.inputs.resize(2);
    plan.inputs[0].placeholder = "x";
    plan.inputs[1].placeholder = "index";
    plan.user_inputs = {0, 1};
    plan.user_outputs = {2};
    plan.code = {compile_cuda("pick", source, emulated_architecture).code};
    LaunchStep action;
    action.code = 0;
    action.function = "pick";
    action.block = {64, 1, 1};
    for (const int b : {0, 1, 2}) {
        action.arguments.emplace_back(BufferArgument{b, b == 2, {}});
    }
    Step step;
    step.kernel = "pick";
    step.action = action;
    plan.steps = {step};
    const std::vector<std::byte> bytes = save_plan(plan);
    const std::string path = test::build_folder() + "/measuring_" + name + ".plan";
    write_file_atomically(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    return path;
}

}  // namespace

TEST_CASE("a right candidate is timed beside the reference, a wrong one is told with place and values") {
    use_test_gpu();
    Measurer measurer;
    TimingRequest request{2, plan_file("reference", "y[i] = x[index[i]];"), "", {"0", "64"}, {}};
    request.candidates = {plan_file("same", "const float value = x[index[i]]; y[i] = value;")};
    const std::vector<std::vector<double>> times = measurer.time(parse_timing_request(to_line(request)));
    REQUIRE(times.size() == 2);
    CHECK(times[0].size() == 2);
    CHECK(times[1][1] > 0);

    TimingRequest spoiler = request;
    spoiler.candidates = {plan_file("spoiler", "y[i] = i == 5 ? 1000.0F : x[index[i]]; x[i] = 7.0F;")};
    CHECK_THROWS_WITH_AS(measurer.time(spoiler), doctest::Contains("output 0 differs from the default schedule's at element 5: expected "),
                         UserError);
    TimingRequest lazy = request;
    lazy.candidates = {plan_file("lazy", "if (i < 63) { y[i] = x[index[i]]; }")};
    CHECK_THROWS_WITH_AS(measurer.time(lazy), doctest::Contains("at element 63"), UserError);
    CHECK(measurer.time(request).size() == 2);
}

TEST_CASE("comparison in device memory: tolerance of the type, NaN where NaN is expected, integers exactly") {
    use_test_gpu();
    const CudaStream stream;
    DeviceCompare compare;
    const auto differs = [&](DType type, const auto &expected, const auto &actual) {
        const DeviceMemory a(sizeof expected), b(sizeof actual);
        std::memcpy(a.data(), &expected, sizeof expected);
        std::memcpy(b.data(), &actual, sizeof actual);
        const Tensor x{type, {3}, {1}, a.data(), nullptr}, y{type, {3}, {1}, b.data(), nullptr};
        return compare.mismatch(x, y, stream.get()).value_or("");
    };
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    using Floats = std::array<float, 3>;
    CHECK(differs(DType::float32, Floats{1, 100, nan}, Floats{1.001F, 100, nan}) == "");
    CHECK(differs(DType::float32, Floats{1, 100, nan}, Floats{1.25F, 100, nan}) == "element 0: expected 1, got 1.25");
    CHECK(differs(DType::float32, Floats{1, nan, 2}, Floats{1, 1, 2}).starts_with("element 1: expected nan"));
    CHECK(differs(DType::float32, Floats{1, infinity, 2}, Floats{1, infinity, 2}) == "");
    CHECK(differs(DType::float32, Floats{1, infinity, 2}, Floats{1, -infinity, 2}) == "element 1: expected inf, got -inf");
    using Integers = std::array<std::int64_t, 3>;
    CHECK(differs(DType::int64, Integers{1, 2, 3}, Integers{1, 2, 3}) == "");
    CHECK(differs(DType::int64, Integers{1, 2, 1LL << 60}, Integers{1, 2, (1LL << 60) + 1}).starts_with("element 2"));
}
