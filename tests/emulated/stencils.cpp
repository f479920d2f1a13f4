// Windows, stencils and transposes on the host emulation: what neighbours share is read once, whichever way the tensors lie.
#include <doctest/doctest.h>

#include "dsl/schedule/builder.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/program_text.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string convolution(const std::string &x, const std::string &w, const std::string &y, const std::string &attributes) {
    return "%x : " + x + " = placeholder\n%w : " + w + " = placeholder\n%b : float32[" +
           w.substr(w.find('[') + 1, w.find(',') - w.find('[') - 1) + "] = placeholder\n%y : " + y +
           " = call_function aten.convolution.default(input=%x, weight=%w, bias=%b, " + attributes + ")\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("depthwise windows: each place of a line is loaded once, channels last and first, padded, strided, dilated, with tails") {
    CHECK(check_emulated(convolution("float32[2, 6, 9, 17] strides=[918, 1, 102, 6]", "float32[6, 1, 5, 5]",
                                     "float32[2, 6, 9, 17] strides=[918, 1, 102, 6]",
                                     "stride=[1, 1], padding=[2, 2], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=6")
                             .c_str()) == "");
    CHECK(check_emulated(convolution("float32[1, 4, 12, 19]", "float32[4, 1, 3, 3]", "float32[1, 4, 6, 10]",
                                     "stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=4")
                             .c_str()) == "");
    CHECK(check_emulated(convolution("float32[1, 4, 12, 19]", "float32[4, 1, 3, 3]", "float32[1, 4, 8, 15]",
                                     "stride=[1, 1], padding=[0, 0], dilation=[2, 2], transposed=false, output_padding=[0, 0], groups=4")
                             .c_str()) == "");
}

TEST_CASE(
    "depthwise windows over several lines: each row is loaded once and folded into each line, with tails, strides, dilation and borders") {
    const auto check = [](const std::string &x, const std::string &w, const std::string &y, const std::string &stride,
                          const std::string &padding, const std::string &dilation) {
        return check_emulated(convolution(x, w, y,
                                          "stride=[" + stride + "], padding=[" + padding + "], dilation=[" + dilation +
                                              "], transposed=false, output_padding=[0, 0], groups=" +
                                              w.substr(w.find('[') + 1, w.find(',') - w.find('[') - 1))
                                  .c_str());
    };
    CHECK(check("float32[1, 6, 18, 17] strides=[1836, 1, 102, 6]", "float32[6, 1, 5, 5]", "float32[1, 6, 18, 17] strides=[1836, 1, 102, 6]",
                "1, 1", "2, 2", "1, 1") == "");
    CHECK(check("bfloat16[1, 40, 16, 14] strides=[8960, 1, 560, 40]", "bfloat16[40, 1, 7, 7]",
                "bfloat16[1, 40, 16, 14] strides=[8960, 1, 560, 40]", "1, 1", "3, 3", "1, 1") == "");
    CHECK(check("float32[1, 3, 37, 20]", "float32[3, 1, 5, 5]", "float32[1, 3, 17, 8]", "2, 2", "0, 0", "1, 1") == "");
    CHECK(check("float32[1, 3, 24, 20]", "float32[3, 1, 5, 5]", "float32[1, 3, 16, 12]", "1, 1", "0, 0", "2, 2") == "");
    CHECK(check("float32[1, 3, 20, 16]", "float32[3, 1, 5, 5]", "float32[1, 3, 20, 8]", "1, 2", "2, 2", "1, 1") == "");
}

TEST_CASE("pools: what neighbouring windows share is loaded once, whatever they fold with") {
    CHECK(check_emulated("%x : float32[2, 3, 11, 18] = placeholder\n%y : float32[2, 3, 11, 18] = call_function "
                         "aten.avg_pool2d.default(self=%x, kernel_size=[3, 3], stride=[1, 1], "
                         "padding=[1, 1])\n%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : float32[2, 3, 13, 19] = placeholder\n%y : float32[2, 3, 6, 9] = call_function "
                         "aten.max_pool2d.default(self=%x, kernel_size=[3, 3], stride=[2, 2])\n"
                         "%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : float32[2, 3, 12, 20] = placeholder\n%y : float32[2, 3, 6, 10] = call_function "
                         "aten.max_pool2d.default(self=%x, kernel_size=[3, 3], stride=[2, 2], "
                         "padding=[1, 1])\n%output = output(values=[%y])") == "");
    CHECK(check_emulated(
              "%x : bfloat16[2, 16, 12, 20] strides=[3840, 1, 320, 16] = placeholder\n%y : bfloat16[2, 16, 6, 10] strides=[960, 1, 160, "
              "16] = call_function "
              "aten.max_pool2d.default(self=%x, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1])\n%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : bfloat16[2, 3, 12, 20] = placeholder\n%y : bfloat16[2, 3, 6, 10] = call_function "
                         "aten.avg_pool2d.default(self=%x, kernel_size=[2, 2])\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("windows that share nothing: adaptive averages whose windows divide the input, whichever way the tensors lie, with tails") {
    const auto check = [](const std::string &x, const std::string &y, const std::string &size) {
        return check_emulated(("%x : " + x + " = placeholder\n%y : " + y +
                               " = call_function aten._adaptive_avg_pool2d.default(self=%x, output_size=" + size +
                               ")\n%output = output(values=[%y])")
                                  .c_str());
    };
    CHECK(check("bfloat16[2, 16, 28, 28] strides=[12544, 1, 448, 16]", "bfloat16[2, 16, 7, 7] strides=[784, 1, 112, 16]", "[7, 7]") == "");
    CHECK(check("float32[1, 6, 12, 10] strides=[720, 1, 60, 6]", "float32[1, 6, 3, 5] strides=[90, 1, 30, 6]", "[3, 5]") == "");
    CHECK(check("bfloat16[2, 3, 12, 20]", "bfloat16[2, 3, 6, 4]", "[6, 4]") == "");
    CHECK(check("float32[3, 8, 12]", "float32[3, 2, 1]", "[2, 1]") == "");
    CHECK(check("float32[1, 3, 13, 9]", "float32[1, 3, 5, 3]", "[5, 3]") == "");
}

TEST_CASE("stencils: vectors of a window begin where alignment allows") {
    const std::string box =
        "\n%a : float32[6, SIZE] = call_function aten.slice.Tensor(self=%x, dim=1, start=0, end=SIZE)"
        "\n%b : float32[6, SIZE] = call_function aten.slice.Tensor(self=%x, dim=1, start=1, end=ONE)"
        "\n%c : float32[6, SIZE] = call_function aten.slice.Tensor(self=%x, dim=1, start=2, end=TWO)"
        "\n%d : float32[6, SIZE] = call_function aten.add.Tensor(self=%a, other=%b)\n%e : float32[6, SIZE] = call_function "
        "aten.add.Tensor(self=%d, other=%c)"
        "\n%h : float32[6, SIZE] = call_function aten.div.Tensor(self=%e, other=3)"
        "\n%i : float32[5, SIZE] = call_function aten.slice.Tensor(self=%h, dim=0, start=0, end=5)"
        "\n%j : float32[5, SIZE] = call_function aten.slice.Tensor(self=%h, dim=0, start=1, end=6)"
        "\n%y : float32[5, SIZE] = call_function aten.mul.Tensor(self=%i, other=%j)\n%output = output(values=[%y])";
    for (const int size : {64, 66, 67, 262}) {  // rows that begin at 8, 16, 4 and 8 bytes beyond a multiple of 16
        std::string lines = "%x : float32[6, " + std::to_string(size + 2) + "] = placeholder" + box;
        for (const auto &[name, value] : {std::pair("SIZE", size), std::pair("ONE", size + 1), std::pair("TWO", size + 2)}) {
            for (std::size_t at = lines.find(name); at != std::string::npos; at = lines.find(name)) {
                lines.replace(at, std::string(name).size(), std::to_string(value));
            }
        }
        CAPTURE(size);
        CHECK(check_emulated(lines.c_str()) == "");
    }
}

TEST_CASE("a stage that neighbours share is computed once for a block, into shared memory, with the places around the block") {
    Program program = program_from(
        "%x : float32[9, 70] = placeholder\n%e : float32[9, 70] = call_function aten.exp.default(self=%x)\n"
        "%t : float32[8, 70] = call_function aten.slice.Tensor(self=%e, dim=0, start=0, end=8)\n"
        "%u : float32[8, 70] = call_function aten.slice.Tensor(self=%e, dim=0, start=1, end=9)\n"
        "%s : float32[8, 70] = call_function aten.add.Tensor(self=%t, other=%u)\n"
        "%y : float32[8, 70] = call_function aten.mul.Tensor(self=%s, other=%t)\n%output = output(values=[%y])");
    functionalize(program);
    decompose(program);
    FusionOptions options;
    options.mode = FusionMode::max;
    const Partition parts = partition(translate(program).algorithm, options);
    REQUIRE(parts.kernels.size() == 1);
    const Kernel &kernel = parts.kernels[0];
    const std::string last = kernel.algorithm.outputs[0].stage;
    ScheduleBuilder s;
    s[last].split("d1", "columns", "thread", 32).split("d0", "rows", "row", 4).reorder("row", "thread", "columns", "rows").unroll("row");
    s[last].gpu_blocks("columns", "rows").gpu_threads("thread");
    s["exp"].compute_at(last, "columns").store_in("shared");
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    CHECK(first_difference(run_emulated(kernel, s.directives, inputs), run_on_cpu(kernel, {}, inputs, {}), 1e-5) == "");
}
