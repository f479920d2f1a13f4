// Sums that are rounded to 16 bits are made of whole vectors, with the bits of a float sum that is rounded.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// What a function of two tensors becomes, and how its values on the emulated GPU differ from the CPU's.
struct Outcome {
    std::string source, difference;
};
Outcome outcome(const std::string &type, const std::string &body) {
    const std::string shape = type + "[6, 512]";
    const Kernel kernel = kernels_from(("%x : " + shape + " = placeholder\n%y : " + shape + " = placeholder\n" + body).c_str()).front();
    const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    return {lower_cuda(kernel, directives, gpu_facts("sm_90a")).source,
            first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 0)};
}
bool has(const Outcome &outcome, const std::string &text) { return outcome.source.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("a sum that is stored and read again is added two lanes at once") {
    for (const std::string type : {"bfloat16", "float16"}) {
        const Outcome sum = outcome(type, "%h : " + type + "[6, 512] = call_function aten.add.Tensor(self=%x, other=%y)\n%m : " + type +
                                              "[6] = call_function aten.amax.default(self=%h, dim=[1])\n%output = output(values=[%h, %m])");
        CHECK(has(sum, "tw::add_vectors("));
        CHECK(sum.difference == "");
    }
}

TEST_CASE("a difference alone, and a sum of sums") {
    const Outcome difference = outcome("bfloat16",
                                       "%h : bfloat16[6, 512] = call_function aten.sub.Tensor(self=%x, other=%y)\n"
                                       "%output = output(values=[%h])");
    CHECK(has(difference, "tw::subtract_vectors("));
    CHECK(difference.difference == "");
    const Outcome chain = outcome("bfloat16",
                                  "%h : bfloat16[6, 512] = call_function aten.add.Tensor(self=%x, other=%y)\n"
                                  "%k : bfloat16[6, 512] = call_function aten.add.Tensor(self=%h, other=%h)\n"
                                  "%output = output(values=[%h, %k])");
    CHECK(has(chain, "tw::add_vectors("));
    CHECK(chain.difference == "");
}

TEST_CASE("a scaled sum is not a sum of vectors") {
    const Outcome scaled = outcome("bfloat16",
                                   "%h : bfloat16[6, 512] = call_function aten.add.Tensor(self=%x, other=%y, alpha=3)\n"
                                   "%output = output(values=[%h])");
    CHECK(!has(scaled, "tw::add_vectors("));
    CHECK(scaled.difference == "");
}

TEST_CASE("operands that are converted anyway are added as floats") {
    const Outcome both = outcome("bfloat16",
                                 "%h : bfloat16[6, 512] = call_function aten.add.Tensor(self=%x, other=%y)\n"
                                 "%k : bfloat16[6, 512] = call_function aten.mul.Tensor(self=%x, other=%h)\n"
                                 "%output = output(values=[%h, %k])");
    CHECK(!has(both, "tw::add_vectors("));
    CHECK(both.difference == "");
}
