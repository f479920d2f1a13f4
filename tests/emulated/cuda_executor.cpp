// The GPU runtime over the emulated driver: the same executor, streams, graphs and captures, with kernels run on the host.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "dsl/error.h"
#include "lowering/cuda/compile.h"
#include "runtime/cuda/memory.h"
#include "runtime/executor.h"
#include "tests/support/gpu.h"

using namespace tilewright;

namespace {

const char *affine_source = R"(#include "tilewright_device.h"
extern "C" __global__ void affine(tw::in<float> x, tw::out<float> y, tw::int64 n, float unused) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) {
        y[i] = x[i] * 2.0F + 1.0F;
    }
}
extern "C" __global__ void pick(tw::in<float> x, tw::in<tw::int64> index, tw::out<float> y, tw::int64 n, tw::status *flag) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) {
        y[i] = x[tw::checked_index(flag, index[i], n, true, 0)];
    }
}
)";

PlanBuffer buffer(PlanBuffer::Kind kind, const char *name, TensorMeta meta, int index) {
    PlanBuffer result;
    result.kind = kind;
    result.name = name;
    result.meta = std::move(meta);
    result.index = index;
    return result;
}

Step launch(const char *function, std::vector<StepArgument> arguments, const Extent &n) {
    LaunchStep action;
    action.code = 0;
    action.function = function;
    action.grid = {ceil_div(n, 32), 1, 1};
    action.block = {32, 1, 1};
    action.arguments = std::move(arguments);
    Step step;
    step.kernel = function;
    step.action = action;
    return step;
}

/// x [n], index [n] -> affine(affine(x)) gathered by index; x becomes affine(x).
Plan sample_plan() {
    const Extent n = Extent::symbol("s0");
    const TensorMeta floats = TensorMeta::contiguous(DType::float32, {n});
    Plan plan;
    plan.target = TargetKind::cuda;
    plan.device = "host";
    plan.symbols["s0"] = {1, 1000};
    plan.buffers = {buffer(PlanBuffer::Kind::input, "x", floats, 0),
                    buffer(PlanBuffer::Kind::input, "index", TensorMeta::contiguous(DType::int64, {n}), 1),
                    buffer(PlanBuffer::Kind::intermediate, "once", floats, 0), buffer(PlanBuffer::Kind::intermediate, "twice", floats, 0),
                    buffer(PlanBuffer::Kind::output, "picked", floats, 0)};
    plan.buffers[2].write_back_to = 0;
    plan.inputs.resize(2);
    plan.inputs[0].placeholder = "x";
    plan.inputs[1].placeholder = "index";
    plan.user_inputs = {0, 1};
    plan.user_outputs = {4};
    plan.code = {compile_cuda("affine", affine_source, emulated_architecture).code};
    const ScalarArgument count{n, 8};
    plan.steps = {
        launch("affine", {BufferArgument{0, false, {}}, BufferArgument{2, true, {}}, count, ScalarArgument{0, 4}}, n),
        launch("affine", {BufferArgument{2, false, {}}, BufferArgument{3, true, {}}, count, ScalarArgument{0, 4}}, n),
        launch("pick", {BufferArgument{3, false, {}}, BufferArgument{1, false, {}}, BufferArgument{4, true, {}}, count, StatusArgument{}},
               n)};
    plan.index_sites = {{"node pick: aten.index, dimension 0 of x"}};
    return plan;
}

template<typename T> HostTensor tensor(DType type, const std::vector<T> &values) {
    HostTensor result = HostTensor::zeros(type, {static_cast<std::int64_t>(values.size())});
    std::memcpy(result.mutable_data(), values.data(), values.size() * sizeof(T));
    return result;
}

std::vector<float> floats_of(const std::byte *data, int count) {
    std::vector<float> values(count);
    std::memcpy(values.data(), data, count * sizeof(float));
    return values;
}

}  // namespace

TEST_CASE("a plan runs from host memory, in two sizes, and writes back") {
    use_test_gpu();
    const auto executor = make_cuda_executor(sample_plan());
    for (const int n : {3, 70}) {
        std::vector<float> x(n);
        std::vector<std::int64_t> index(n);
        for (int i = 0; i < n; i++) {
            x[i] = static_cast<float>(i);
            index[i] = i == 0 ? -1 : i - 1;
        }
        std::vector<HostTensor> mutated;
        const auto outputs = executor->run_host(std::vector{tensor(DType::float32, x), tensor(DType::int64, index)}, &mutated);
        const std::vector<float> picked = floats_of(outputs[0].data(), n);
        CHECK(picked[0] == static_cast<float>(n - 1) * 4 + 3);
        CHECK(picked[n - 1] == static_cast<float>(n - 2) * 4 + 3);
        CHECK(floats_of(mutated[0].data(), n)[n - 1] == static_cast<float>(n - 1) * 2 + 1);
    }
    CHECK_THROWS_WITH_AS(
        executor->run_host(std::vector{tensor<float>(DType::float32, {1, 2}), tensor<std::int64_t>(DType::int64, {0, 2})}),
        "node pick: aten.index, dimension 0 of x: index 2 is out of range for size 2; correct the indices given to the model", UserError);
}

TEST_CASE("runs on a caller's stream replay a graph, and a caller's capture holds its memory") {
    use_test_gpu();
    auto executor = make_cuda_executor(sample_plan());
    const CudaStream stream;
    const DeviceMemory x(8), index(16), y(8);
    const std::vector<Tensor> inputs = {{DType::float32, {2}, {1}, x.data(), nullptr}, {DType::int64, {2}, {1}, index.data(), nullptr}};
    const std::vector<Tensor> outputs = {{DType::float32, {2}, {1}, y.data(), nullptr}};
    const auto set = [&](float a, float b) {
        const float values[] = {a, b};
        const std::int64_t places[] = {1, 0};
        std::memcpy(x.data(), values, sizeof(values));
        std::memcpy(index.data(), places, sizeof(places));
    };
    for (int run = 0; run < 4; run++) {
        set(static_cast<float>(run), 5);
        executor->run_into(inputs, outputs, stream.get());
        CHECK(floats_of(y.data(), 2) == std::vector<float>{23, static_cast<float>(run) * 4 + 3});
        CHECK(floats_of(x.data(), 2)[1] == 11);
    }
    const CudaGraph graph(stream.get(), [&](CUstream on) { executor->run_into(inputs, outputs, on); });
    set(1, 2);
    graph.launch(stream.get());
    CHECK(floats_of(y.data(), 2) == std::vector<float>{11, 7});

    const std::vector<Tensor> strided = {{DType::float32, {2}, {2}, x.data(), nullptr}, inputs[1]};
    CHECK_THROWS_WITH_AS(executor->run_into(strided, outputs, stream.get()),
                         doctest::Contains("has strides [2], the model was captured with [1]"), UserError);
}

TEST_CASE("tensors that begin within a 16-byte word are copied to where wide accesses may begin, and back") {
    use_test_gpu();
    auto executor = make_cuda_executor(sample_plan());
    const CudaStream stream;
    const DeviceMemory x(64), index(64), y(64);
    const std::vector<Tensor> inputs = {{DType::float32, {2}, {1}, x.data() + 4, nullptr},
                                        {DType::int64, {2}, {1}, index.data() + 8, nullptr}};
    const std::vector<Tensor> outputs = {{DType::float32, {2}, {1}, y.data() + 12, nullptr}};
    const float values[] = {1, 5};
    const std::int64_t places[] = {1, 0};
    std::memcpy(x.data() + 4, values, sizeof(values));
    std::memcpy(index.data() + 8, places, sizeof(places));
    executor->run_into(inputs, outputs, stream.get());
    CHECK(floats_of(y.data() + 12, 2) == std::vector<float>{23, 7});
    CHECK(floats_of(x.data() + 4, 2) == std::vector<float>{3, 11});  // the new value of an input that the plan writes
}
