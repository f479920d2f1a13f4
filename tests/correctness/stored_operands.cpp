// What keeps a product off the matrix unit is stored: operands computed or gathered in its kernel, results that are read at other places.
#include <doctest/doctest.h>

#include <algorithm>

#include "lowering/cuda_schedules/convolution_schedule.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/partitions.h"
#include "tests/support/program_text.h"
#include "tests/support/schedule_kernels.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

Partition partition_for_unit(const std::string &lines) {
    Program program = program_from(lines.c_str());
    functionalize(program);
    decompose(program);
    FusionOptions options;
    options.channels_innermost = true;
    options.multiplies = [](const Algorithm &algorithm) {
        Kernel kernel;
        kernel.algorithm = algorithm;
        return match_matrix_product(kernel, gpu_facts("sm_90a")) || match_convolution(kernel, gpu_facts("sm_90a"));
    };
    return partition(translate(program).algorithm, options);
}
bool has_unit_kernel(const Partition &parts) {
    return std::any_of(parts.kernels.begin(), parts.kernels.end(), [](const Kernel &kernel) {
        return match_matrix_product(kernel, gpu_facts("sm_90a")) || match_convolution(kernel, gpu_facts("sm_90a"));
    });
}

}  // namespace

TEST_CASE("a scaled image is stored before a convolution reads it") {
    const Partition parts = partition_for_unit(
        "%x : bfloat16[2, 64, 8, 8] strides=[4096, 1, 512, 64] = placeholder\n%s : bfloat16[2, 64, 1, 1] = placeholder\n"
        "%w : bfloat16[64, 64, 1, 1] = placeholder\n%z : bfloat16[2, 64, 8, 8] = call_function aten.mul.Tensor(self=%x, other=%s)\n"
        "%y : bfloat16[2, 64, 8, 8] = call_function aten.conv2d.default(input=%z, weight=%w)\n%output = output(values=[%y])");
    CHECK(has_unit_kernel(parts));
    CHECK(print_decisions(parts).find("stored, or the matrix unit would not multiply") != std::string::npos);
}

TEST_CASE("windows of an image are gathered before a product reads them") {
    const Partition parts = partition_for_unit(
        "%x : bfloat16[2, 14, 14, 64] = placeholder\n%w : bfloat16[96, 64] = placeholder\n"
        "%a : bfloat16[2, 2, 7, 2, 7, 64] = call_function aten.view.default(self=%x, size=[2, 2, 7, 2, 7, 64])\n"
        "%b : bfloat16[2, 2, 2, 7, 7, 64] = call_function aten.permute.default(self=%a, dims=[0, 1, 3, 2, 4, 5])\n"
        "%c : bfloat16[8, 49, 64] = call_function aten.reshape.default(self=%b, shape=[8, 49, 64])\n"
        "%y : bfloat16[8, 49, 96] = call_function aten.linear.default(input=%c, weight=%w)\n%output = output(values=[%y])");
    CHECK(parts.kernels.size() == 2);
    CHECK(has_unit_kernel(parts));
}

TEST_CASE("a product that reads its operand in place stays as it is") {
    const Partition parts = partition_for_unit(
        "%x : bfloat16[8, 49, 64] = placeholder\n%w : bfloat16[96, 64] = placeholder\n"
        "%y : bfloat16[8, 49, 96] = call_function aten.linear.default(input=%x, weight=%w)\n%output = output(values=[%y])");
    CHECK(parts.kernels.size() == 1);
}

TEST_CASE("a concatenation that others read beside a convolution is stored") {
    const Partition parts = partition_for_unit(
        "%x : bfloat16[2, 32, 8, 8] = placeholder\n%z : bfloat16[2, 32, 8, 8] = placeholder\n%w : bfloat16[64, 64, 1, 1] = placeholder\n"
        "%c : bfloat16[2, 64, 8, 8] = call_function aten.cat.default(tensors=[%x, %z], dim=1)\n"
        "%y : bfloat16[2, 64, 8, 8] = call_function aten.conv2d.default(input=%c, weight=%w)\n"
        "%m : bfloat16[2, 1, 8, 8] = call_function aten.amax.default(self=%c, dim=[1], keepdim=true)\n%output = output(values=[%y, %m])");
    CHECK(has_unit_kernel(parts));
}

TEST_CASE("a stored index map is what its kernel's threads run over") {
    Program program = program_from(
        "%x : bfloat16[1, 8, 512] = placeholder\n%z : bfloat16[1, 8, 512] = placeholder\n"
        "%c : bfloat16[2, 8, 512] = call_function aten.cat.default(tensors=[%x, %z])\n"
        "%v : bfloat16[16, 512] = call_function aten.view.default(self=%c, size=[16, 512])\n%output = output(values=[%v])");
    functionalize(program);
    decompose(program);
    Kernel kernel;
    kernel.algorithm = translate(program).algorithm;
    const Directives directives = default_cuda_schedule(kernel, gpu_facts("sm_90a"));
    CHECK(std::any_of(directives.begin(), directives.end(),
                      [&](const Directive &d) { return d.stage == kernel.algorithm.outputs[0].stage && d.name == "gpu_threads"; }));
}

TEST_CASE("gathered rows times weights that are stored stay in the product's kernel") {
    const Partition parts = partition_for_unit(
        "%x : float32[509, 176] = placeholder\n%i : int64[509] = placeholder\n%w : int8[176, 355] = placeholder\n"
        "%g : float32[509, 176] = call_function aten.index_select.default(self=%x, dim=0, index=%i)\n"
        "%c : float32[176, 355] = call_function prims.convert_element_type(a=%w, dtype=torch.float32, explicit=true)\n"
        "%s : float32[176, 355] = call_function aten.mul.Scalar(self=%c, other=0.125)\n"
        "%y : float32[509, 355] = call_function aten.mm.default(self=%g, mat2=%s)\n%output = output(values=[%y])");
    CHECK(!has_unit_kernel(parts));
    CHECK(parts.kernels.size() == 1);
}
