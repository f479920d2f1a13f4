// What the emulation is there for: a fault put into an emitted kernel, a barrier removed or an index shifted, is caught.
#include <doctest/doctest.h>

#include <algorithm>

#include "lowering/cuda/emulate.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/pipeline.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// A product with tiles in shared memory, and a softmax of rows that a block shares.
const char *product_lines =
    "%a : float32[160, 128] = placeholder\n%b : float32[128, 208] = placeholder\n"
    "%y : float32[160, 208] = call_function aten.mm.default(self=%a, mat2=%b)\n%output = output(values=[%y])";
const char *softmax_lines =
    "%x : float32[3, 5000] = placeholder\n%y : float32[3, 5000] = call_function aten.softmax.int(self=%x, dim=1)\n"
    "%output = output(values=[%y])";

struct Emitted {
    explicit Emitted(const char *lines) : kernel(kernels_from(lines).at(0)), inputs(random_inputs(kernel, {}, 1)) {
        expected = run_on_cpu(kernel, {}, inputs, {});
        code = lower_cuda(kernel, default_cuda_schedule(kernel, gpu_facts("sm_90a")), gpu_facts("sm_90a"));
    }
    /// How a changed source shows itself; empty where it does not.
    std::string fault(const std::string &source) const {
        CudaKernelCode changed = code;
        changed.source = source;
        try {
            return first_difference(run_emulated(kernel, changed, inputs), expected, 1e-4);
        } catch (const EmulationFault &caught) {
            return caught.what();
        }
    }
    Kernel kernel;
    std::vector<HostTensor> inputs, expected;
    CudaKernelCode code;
};

/// The source with its `number`th `text` replaced; empty where it has fewer.
std::string replaced(std::string source, const std::string &text, const std::string &by, int number) {
    std::size_t at = source.find(text);
    for (; number > 0 && at != std::string::npos; --number) {
        at = source.find(text, at + 1);
    }
    return at == std::string::npos ? "" : source.replace(at, text.size(), by);
}

/// Replaces each `text` in turn; returns how many there were.
int check_each(const Emitted &emitted, const std::string &text, const std::string &by) {
    int number = 0;
    for (std::string source; !(source = replaced(emitted.code.source, text, by, number)).empty(); ++number) {
        CHECK_MESSAGE(emitted.fault(source) != "", text, " number ", number, " of\n", emitted.code.source);
    }
    return number;
}

}  // namespace

TEST_CASE("the kernels are right as they are emitted") {
    for (const char *lines : {product_lines, softmax_lines}) {
        const Emitted emitted(lines);
        CHECK(emitted.fault(emitted.code.source) == "");
    }
}

TEST_CASE("a barrier removed") {
    const Emitted emitted(product_lines);
    CHECK(check_each(emitted, "tw::sync_block();", "") >= 2);
}

TEST_CASE("an index shifted") {
    CHECK(check_each(Emitted(product_lines), "in0[", "in0[1 + ") >= 1);
    const Emitted rows(softmax_lines);
    CHECK(check_each(rows, "(in0, ", "(in0, 4 + ") >= 1);
    CHECK(check_each(rows, "(out0, ", "(out0, 4 + ") >= 1);
    CHECK(check_each(rows, "(out0, ", "(out0, 1 + ") >= 1);  // not aligned
}

TEST_CASE("a barrier that not all threads reach, and a shared array too short") {
    const Emitted rows(softmax_lines);
    CHECK(check_each(rows, "tw::sync_block();", "if (thread < 64) {\n        tw::sync_block();\n    }") >= 2);
    CHECK(check_each(rows, "shared_array<float, ", "shared_array<float, -1 + ") >= 2);
}
