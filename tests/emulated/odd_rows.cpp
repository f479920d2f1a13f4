// Rows that begin at odd places of memory: edges loaded once, weights and other tensors from anywhere, sums of columns in rows that begin
// alike, columns whose last vector moves inwards, extreme values with their places.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

const GpuFacts &facts() { return gpu_facts("sm_90a"); }

std::string code_of(const std::string &lines) {
    const Kernel kernel = kernels_from(lines.c_str()).front();
    return lower_cuda(kernel, default_cuda_schedule(kernel, facts()), facts()).source;
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string layer_norm(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%g : {0}[{2}] = placeholder\n%b : {0}[{2}] = placeholder\n"
        "%y : {0}[{1}, {2}] = call_function aten.layer_norm.default(input=%x, normalized_shape=[{2}], weight=%g, bias=%b)\n"
        "%output = output(values=[%y])",
        type, rows, columns);
}

std::string rows_and_columns(const std::string &type, int rows, int columns) {
    return fmt::format(
        "%x : {0}[{1}, {2}] = placeholder\n%g : {0}[{1}, {2}] = placeholder\n"
        "%m : {0}[{1}, 1] = call_function aten.mean.dim(self=%x, dim=[1], keepdim=true)\n"
        "%c : {0}[{1}, {2}] = call_function aten.sub.Tensor(self=%x, other=%m)\n"
        "%y : {0}[{1}, {2}] = call_function aten.mul.Tensor(self=%c, other=%g)\n"
        "%s : {0}[{2}] = call_function aten.sum.dim_IntList(self=%y, dim=[0])\n%output = output(values=[%y, %s])",
        type, rows, columns);
}

}  // namespace

TEST_CASE("edges of a row are loaded once, what lies otherwise from anywhere") {
    const std::string lines = layer_norm("bfloat16", 9, 4093), code = code_of(lines);
    CHECK(has(code, "tw::load_inside<8>(in0"));
    CHECK(has(code, "tw::load_anywhere<8>(in1"));
    CHECK(check_emulated(lines.c_str(), {}, 2e-2) == "");
    CHECK(check_emulated(layer_norm("float32", 5, 2051).c_str(), {}, 1e-4) == "");
}

TEST_CASE("a cluster has no block without a part of the row") {
    const std::string lines = layer_norm("float32", 3, 21332);
    CHECK(has(print(default_cuda_schedule(kernels_from(lines.c_str()).front(), facts())), "cluster(7, 1)"));
    CHECK(check_emulated(lines.c_str(), {}, 1e-4) == "");
}

TEST_CASE("sums over rows that begin at odd places: a block takes rows that begin alike") {
    for (const auto &[rows, columns] : {std::pair{301, 1021}, {333, 2051}}) {
        const std::string lines = rows_and_columns("float32", rows, columns);
        const Kernel kernel = kernels_from(lines.c_str()).front();
        const Directives directives = default_cuda_schedule(kernel, facts());
        CHECK(has(print(directives), "align("));
        const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        CHECK(first_difference(run_emulated(kernel, directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 1e-4) == "");
    }
}

TEST_CASE("the last vector of columns moves inwards") {
    for (const char *type : {"float32", "bfloat16"}) {
        for (const auto &[rows, columns] : {std::pair{259, 211}, {1301, 1021}}) {
            const std::string lines = fmt::format(
                "%x : {0}[{1}, {2}] = placeholder\n"
                "%s : {0}[{2}] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n"
                "%output = output(values=[%s])",
                type, rows, columns);
            CHECK(has(print(default_cuda_schedule(kernels_from(lines.c_str()).front(), facts())), "shift_inwards("));
            CHECK(check_emulated(lines.c_str(), {}, 2e-2) == "");
        }
    }
}

TEST_CASE("the first of equal extremes, the first NaN, rows of infinities") {
    const std::string lines =
        "%x : float32[6, 1003] = placeholder\n%y : int64[6] = call_function aten.argmax.default(self=%x, dim=1)\n"
        "%z : int64[6] = call_function aten.argmin.default(self=%x, dim=1)\n%output = output(values=[%y, %z])";
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        auto *x = reinterpret_cast<float *>(inputs[0].mutable_data());
        for (int i = 0; i < 1003; ++i) {
            x[i] = i % 7 == 3 ? 5.0F : 1.0F;
            x[1003 + i] = i == 400 || i == 700 ? NAN : static_cast<float>(i);
            x[2 * 1003 + i] = -INFINITY;
            x[3 * 1003 + i] = INFINITY;
            x[4 * 1003 + i] = 0.0F;
        }
        CHECK(first_difference(run_emulated(kernel, default_cuda_schedule(kernel, facts()), inputs), run_on_cpu(kernel, {}, inputs, {}),
                               0) == "");
    }
}
