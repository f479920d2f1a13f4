// Programs that write their inputs and buffers: what comes out, what the inputs are afterwards, and what a second call sees.
#include <doctest/doctest.h>

#include "runtime/host_memory.h"
#include "tests/support/recorded_mutations.h"

using namespace tilewright;
using tests::RecordedMutation;

TEST_CASE("mutations") { tests::check_recorded_mutations("cpu"); }

TEST_CASE("overlapping rows are copied right each time") {
    for (const char *name : {"overlapping_rows", "overlapping_rows_large"}) {
        const RecordedMutation program(name, "cpu");
        for (int run = 0; run < 20; ++run) {
            std::vector<HostTensor> after;
            program.expect("out", program.model().executor().run_host(program.inputs(), &after));
            program.expect("after", after);
        }
    }
}

TEST_CASE("run() writes mutated inputs in place, whatever their strides") {
    const RecordedMutation program("swap", "cpu");
    std::vector<Tensor> inputs;
    for (const HostTensor &input : program.inputs()) {
        const Tensor contiguous = to_tensor(input);
        Tensor transposed = allocate_tensor(contiguous.dtype, contiguous.sizes, {1, contiguous.sizes[0]});
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 3; ++j) {
                reinterpret_cast<float *>(transposed.data)[i + 2 * j] = reinterpret_cast<const float *>(contiguous.data)[i * 3 + j];
            }
        }
        inputs.push_back(transposed);
    }
    program.model().executor().run(inputs);
    program.expect("after", {to_host_tensor(inputs[0]), to_host_tensor(inputs[1])});
}

TEST_CASE("outputs have PyTorch's strides") {
    const RecordedMutation program("outputs", "cpu");
    const std::vector<HostTensor> outputs = program.model().run(program.inputs());
    REQUIRE(outputs.size() == 7);
    CHECK(outputs[0].meta.strides == std::vector<Extent>{4, 1});
    CHECK(outputs[3].meta.strides == std::vector<Extent>{1, 4});
    CHECK(outputs[6].meta.strides == std::vector<Extent>{1, 4});
}
