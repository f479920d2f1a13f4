// Products and convolutions outside the matrix unit on the host emulation: tiles of sums in registers, streams, terms shared by blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "dsl/error.h"
#include "lowering/cuda_schedules/cuda_space.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/tensor_elements.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string product(const std::string &type, const std::string &a, const std::string &b, const std::string &y) {
    return "%a : " + type + a + " = placeholder\n%b : " + type + b + " = placeholder\n%y : " + type + y +
           " = call_function aten.mm.default(self=%a, mat2=%b)\n%output = output(values=[%y])";
}
std::string linear(const std::string &type, const std::string &x, const std::string &w, const std::string &bias, const std::string &y) {
    return "%x : " + type + x + " = placeholder\n%w : " + type + w + " = placeholder\n%b : " + type + bias +
           " = placeholder\n%l : " + type + y + " = call_function aten.linear.default(input=%x, weight=%w, bias=%b)\n%y : " + type + y +
           " = call_function aten.relu.default(self=%l)\n%output = output(values=[%y])";
}

/// Every candidate schedule of the program's kernels agrees with the CPU target; the first that does not.
std::string check_candidates(const std::string &lines, double tolerance = 1e-4) {
    const GpuFacts facts = gpu_facts("sm_90a");
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        const std::vector<HostTensor> expected = run_on_cpu(kernel, {}, inputs, {});
        const auto candidates = cuda_candidates(kernel, facts);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            std::string difference;
            try {
                difference = first_difference(run_emulated(kernel, candidates[i], inputs), expected, tolerance);
            } catch (const UserError &) {
                continue;  // a proposal that does not fit is refused, as the search expects
            }
            if (!difference.empty()) {
                return kernel.name + " candidate " + std::to_string(i) + ": " + difference;
            }
        }
    }
    return "";
}

/// The schedule of that number among those of products; the first are the defaults.
std::string check_choice(const std::string &lines, int product, double tolerance) {
    const GpuFacts facts = gpu_facts("sm_90a");
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        const Directives directives = schedule_for(kernel, facts, {.product = product});
        const std::string difference =
            first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), tolerance);
        if (!difference.empty()) {
            return kernel.name + ": " + difference;
        }
    }
    return "";
}
std::string check_sums(const std::string &lines) { return check_choice(lines, 0, 1e-4); }
/// Tiles of sums in registers come after the two ways to share terms, which so few results have by default.
std::string check_tiles(const std::string &lines, double tolerance = 1e-4) { return check_choice(lines, 2, tolerance); }

}  // namespace

TEST_CASE("few results: threads share the terms of each, along K, along columns, of channels, with planes and tails") {
    CHECK(check_sums(linear("float32", "[2, 19, 40]", "[52, 40]", "[52]", "[2, 19, 52]")) == "");
    CHECK(check_sums(product("float32", "[7, 300]", "[300, 21]", "[7, 21]")) == "");
    CHECK(check_sums(product("int64", "[5, 6]", "[6, 9]", "[5, 9]")) == "");
    CHECK(check_sums("%a : float32[3, 5, 24] = placeholder\n%b : float32[3, 24, 12] = placeholder\n"
                     "%y : float32[3, 5, 12] = call_function aten.bmm.default(self=%a, mat2=%b)\n%output = output(values=[%y])") == "");
    CHECK(check_sums("%x : float32[2, 37, 6, 5] = placeholder\n%w : float32[8, 37, 3, 3] = placeholder\n"
                     "%c : float32[2, 8, 6, 5] = call_function aten.conv2d.default(input=%x, weight=%w, stride=[1, 1], padding=[1, 1])\n"
                     "%y : float32[2, 8, 6, 5] = call_function aten.relu.default(self=%c)\n%output = output(values=[%y])") == "");
}

TEST_CASE("tiles in registers: right operand along columns, along K, tails everywhere") {
    CHECK(check_tiles(product("float32", "[37, 21]", "[21, 70]", "[37, 70]")) == "");
    CHECK(check_tiles(linear("float32", "[2, 19, 40]", "[52, 40]", "[52]", "[2, 19, 52]")) == "");
    CHECK(check_tiles(product("float64", "[20, 33]", "[33, 24]", "[20, 24]")) == "");
    CHECK(check_tiles(product("int64", "[20, 33]", "[33, 24]", "[20, 24]")) == "");
}

TEST_CASE("every tile gives the same result, with operands in shared memory and without") {
    CHECK(check_candidates(linear("float32", "[72, 36]", "[76, 36]", "[76]", "[72, 76]")) == "");
}

TEST_CASE("tiles in shared memory: both ways to lie, tails, halves that the copy unit cannot fetch") {
    CHECK(check_tiles(product("float32", "[67, 45]", "[45, 70]", "[67, 70]")) == "");
    CHECK(check_tiles(product("bfloat16", "[40, 45]", "[45, 37]", "[40, 37]"), 1e-2) == "");
    CHECK(check_tiles("%a : float32[48, 40] = placeholder\n%b : float32[48, 36] = placeholder\n%t : float32[40, 48] = call_function "
                      "aten.permute.default(self=%a, dims=[1, 0])\n"
                      "%y : float32[40, 36] = call_function aten.mm.default(self=%t, mat2=%b)\n%output = output(values=[%y])") == "");
}

TEST_CASE("few tiles and many terms: blocks share them") {
    CHECK(check_tiles(linear("float32", "[16, 2048]", "[16, 2048]", "[16]", "[16, 16]"), 1e-4) == "");
}

TEST_CASE("float32 sums of many terms: those of each step are added up first") {
    const std::vector<Kernel> kernels = kernels_from(product("float32", "[16, 1000]", "[1000, 64]", "[16, 64]").c_str());
    std::vector<HostTensor> inputs = random_inputs(kernels[0], {}, 1);
    std::ranges::fill(elements<float>(inputs[0]), 0.1F);
    std::ranges::fill(elements<float>(inputs[1]), 1.0F);
    const double exact = 1000 * static_cast<double>(0.1F);
    for (const int choice : {2, 3, -1}) {  // operands in shared memory, and not; a thread for each sum
        const Directives directives = schedule_for(kernels[0], gpu_facts("sm_90a"), {.product = choice});
        const HostTensor sum = run_emulated(kernels[0], directives, inputs).at(0);
        CHECK(std::abs(elements<float>(sum)[0] - exact) < 2e-6 * exact);  // one sum of all terms errs by 1e-5
    }
}

TEST_CASE("few rows: the large operand is read once, whichever way it lies") {
    CHECK(check_emulated(linear("float32", "[1, 256]", "[80, 256]", "[80]", "[1, 80]").c_str(), {}, 1e-4) == "");
    CHECK(check_emulated(linear("bfloat16", "[3, 200]", "[72, 200]", "[72]", "[3, 72]").c_str(), {}, 1e-2) == "");
    CHECK(check_emulated(product("float32", "[2, 200]", "[200, 136]", "[2, 136]").c_str(), {}, 1e-4) == "");
    CHECK(check_emulated(product("float32", "[2, 600]", "[600, 40]", "[2, 40]").c_str(), {}, 1e-4) == "");
    CHECK(check_emulated("%a : float32[50, 300] = placeholder\n%b : float32[300] = placeholder\n"
                         "%y : float32[50] = call_function aten.mv.default(self=%a, vec=%b)\n%output = output(values=[%y])",
                         {}, 1e-4) == "");
}

TEST_CASE("batches, and a convolution with padding, bias and what follows") {
    CHECK(check_tiles("%a : float32[3, 20, 24] = placeholder\n%b : float32[3, 24, 28] = placeholder\n"
                      "%y : float32[3, 20, 28] = call_function aten.bmm.default(self=%a, mat2=%b)\n%output = output(values=[%y])") == "");
    CHECK(
        check_tiles(
            "%x : float32[2, 5, 12, 12] = placeholder\n%w : float32[20, 5, 3, 3] = placeholder\n%b : float32[20] = placeholder\n"
            "%c : float32[2, 20, 12, 12] = call_function aten.conv2d.default(input=%x, weight=%w, bias=%b, stride=[1, 1], padding=[1, 1])\n"
            "%y : float32[2, 20, 12, 12] = call_function aten.relu.default(self=%c)\n%output = output(values=[%y])") == "");
}

TEST_CASE("every candidate of a product of few rows gives the same result") {
    constexpr double rounding_step = 1.0 / 128;  // of bfloat16
    CHECK(check_candidates(linear("bfloat16", "[1, 256]", "[128, 256]", "[128]", "[1, 128]"), rounding_step) == "");
    CHECK(check_candidates(linear("bfloat16", "[16, 256]", "[128, 256]", "[128]", "[16, 128]"), rounding_step) == "");
}

TEST_CASE("one row by weights of 8 bits: 16 of them an access, and what follows in the same pass") {
    const std::string lines =
        "%x : bfloat16[1, 1024] = placeholder\n%q : int8[96, 1024] = placeholder\n%s : bfloat16[96] = placeholder\n"
        "%w : bfloat16[96, 1024] = call_function aten._to_copy.default(self=%q, dtype=torch.bfloat16)\n"
        "%t : bfloat16[1024, 96] strides=[1, 1024] = call_function aten.permute.default(self=%w, dims=[1, 0])\n"
        "%m : bfloat16[1, 96] = call_function aten.mm.default(self=%x, mat2=%t)\n"
        "%y : bfloat16[1, 96] = call_function aten.mul.Tensor(self=%m, other=%s)\n%output = output(values=[%y])";
    CHECK(check_candidates(lines, 1e-2) == "");
    const std::vector<Kernel> kernels = kernels_from(lines.c_str());
    REQUIRE(kernels.size() == 1);
    const GpuFacts facts = gpu_facts("sm_90a");
    const CudaKernelCode code = lower_cuda(kernels[0], default_cuda_schedule(kernels[0], facts), facts);
    CHECK(code.launches.size() == 1);
    CHECK(code.source.find("= tw::load<16>(in1") != std::string::npos);
    CHECK(code.source.find("tw::convert_lane<float>(in1_vec, lane)") != std::string::npos);  // int8 becomes float at once
}
