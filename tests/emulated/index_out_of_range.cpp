// Indices that a tensor does not have are errors that name operator, index and size, on both targets and for each way of indexing.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/pipeline.h"
#include "runtime/executor.h"
#include "tests/support/gpu.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {

struct Case {
    const char *lines;
    std::vector<std::int64_t> table_sizes;
    std::vector<std::int64_t> indices;
    std::int64_t wrong, size;
};

const Case cases[] = {
    {"%t : float32[5, 2] = placeholder\n%i : int64[2] = placeholder\n"
     "%y : float32[2, 2] = call_function aten.embedding.default(weight=%t, indices=%i)\n%output = output(values=[%y])",
     {5, 2},
     {2, -2},
     -2,
     5},
    {"%t : float32[2, 2] = placeholder\n%i : int64[1] = placeholder\n"
     "%y : float32[2, 1] = call_function aten.index_select.default(self=%t, dim=1, index=%i)\n%output = output(values=[%y])",
     {2, 2},
     {2},
     2,
     2},
    {"%t : float32[4, 3] = placeholder\n%i : int64[2] = placeholder\n%s : float32[2, 3] = call_function aten.slice.Tensor(self=%t, dim=0, "
     "start=0, end=2)\n"
     "%y : float32[4, 3] = call_function aten.index_add.default(self=%t, dim=0, index=%i, source=%s)\n%output = output(values=[%y])",
     {4, 3},
     {0, -1},
     -1,
     4},
    {"%t : float32[4] = placeholder\n%i : int64[1] = placeholder\n"
     "%y : float32[1] = call_function aten.index.Tensor(self=%t, indices=[%i])\n%output = output(values=[%y])",
     {4},
     {-5},
     -5,
     4},
};

HostTensor indices_of(const std::vector<std::int64_t> &values) {
    HostTensor tensor = HostTensor::zeros(DType::int64, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), reinterpret_cast<std::int64_t *>(tensor.mutable_data()));
    return tensor;
}

void check_target(const std::string &target) {
    for (const Case &each : cases) {
        Options options;
        options.target = target;
        Plan plan = compile_program(tests::program_from(each.lines), options).plan;
        const auto executor = target == "cpu" ? make_cpu_executor(std::move(plan)) : make_cuda_executor(std::move(plan));
        const std::vector<HostTensor> inputs{HostTensor::zeros(DType::float32, each.table_sizes), indices_of(each.indices)};
        const std::string words = fmt::format("index {} is out of range for size {}", each.wrong, each.size);
        std::string message;
        try {
            executor->run_host(inputs);
        } catch (const UserError &error) {
            message = error.what();
        }
        CHECK_MESSAGE(message.find(words) != std::string::npos, target, ": ", message, "\n", each.lines);
    }
}

}  // namespace

TEST_CASE("on the CPU") { check_target("cpu"); }

TEST_CASE("on the emulated GPU") {
    use_test_gpu();
    check_target("cuda");
}
