// Every form of stage on the CPU, under no directives and under the default schedule, at even, odd, single and empty extents.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lowering/cpu_schedules/default_schedule.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/hand_written.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string text(const Directives &directives) {
    std::string lines;
    for (const Directive &directive : directives) {
        lines += directive.to_string() + "\n";
    }
    return lines;
}

void check(const HandWritten &h) {
    const Directives schedule = default_cpu_schedule(h.kernel);
    for (const Directives &directives : {Directives{}, schedule}) {
        std::string sizes;
        for (const HostTensor &input : h.inputs) {
            sizes += input.meta.to_string() + " ";
        }
        CAPTURE(h.name);
        CAPTURE(sizes);
        CAPTURE(text(directives));
        const std::vector<HostTensor> outputs = run_on_cpu(h.kernel, directives, h.inputs);
        const double error = largest_error(values_of<float>(outputs[0]), h.expected);
        CHECK(error <= h.tolerance);
    }
}

}  // namespace

TEST_CASE("pointwise chains") {
    for (auto [rows, columns] : {std::pair(4, 64), {3, 37}, {1, 1}, {5, 2}, {0, 8}, {300, 700}}) {
        check(pointwise_chain(rows, columns));
    }
}

TEST_CASE("rows") {
    for (auto [rows, columns] : {std::pair(4, 64), {3, 37}, {1, 1}, {5, 300}, {2, 1031}, {0, 8}, {600, 257}}) {
        check(softmax(rows, columns));
        check(layer_norm(rows, columns));
        check(arg_maximum(rows, columns));
    }
}

TEST_CASE("rows that other rows of the kernel read are computed within the output alone") {
    const std::string lines =
        "%x : float32[2, 24, 16] = placeholder\n%w : float32[24] = placeholder\n%b : float32[24] = placeholder\n"
        "%t : float32[2, 16, 24] strides=[384, 1, 16] = call_function aten.permute.default(self=%x, dims=[0, 2, 1])\n"
        "%y : float32[2, 16, 24] = call_function aten.layer_norm.default(input=%t, normalized_shape=[24], weight=%w, bias=%b)\n"
        "%z : float32[2, 16, 24] = call_function aten.layer_norm.default(input=%y, normalized_shape=[24], weight=%w, bias=%b)\n"
        "%output = output(values=[%y, %z])";
    for (const Kernel &kernel : kernels_from(lines.c_str())) {
        const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        CHECK(first_difference(run_on_cpu(kernel, default_cpu_schedule(kernel), inputs), run_on_cpu(kernel, {}, inputs), 1e-5) == "");
    }
}

TEST_CASE("a window's mean is read twice by what follows it") {
    const char *lines =
        "%x : float32[1, 3, 9, 9] = placeholder\n"
        "%m : float32[1, 3, 4, 5] = call_function aten.avg_pool2d.default(self=%x, kernel_size=[3, 2], stride=[2, 2], padding=[0, 0], "
        "ceil_mode=true)\n"
        "%s : float32[1, 3, 4, 5] = call_function aten.sign.default(self=%m)\n%a : float32[1, 3, 4, 5] = call_function "
        "aten.abs.default(self=%m)\n"
        "%y : float32[1, 3, 4, 5] = call_function aten.mul.Tensor(self=%s, other=%a)\n%output = output(values=[%y])";
    for (const Kernel &kernel : kernels_from(lines)) {
        const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
        CHECK(first_difference(run_on_cpu(kernel, default_cpu_schedule(kernel), inputs), run_on_cpu(kernel, {}, inputs), 1e-5) == "");
    }
}

TEST_CASE("columns") {
    for (auto [rows, columns] : {std::pair(4, 64), {37, 3}, {1, 1}, {5, 300}, {0, 8}, {700, 129}, {8, 0}}) {
        check(column_sum(rows, columns));
    }
}

TEST_CASE("products") {
    for (const bool transposed : {false, true}) {
        for (auto [m, n, k] : {std::array{16, 64, 32},
                               {7, 37, 5},
                               {1, 1, 1},
                               {64, 100, 48},
                               {3, 40, 70},
                               {130, 17, 33},
                               {0, 4, 4},
                               {4, 4, 0},
                               {100, 256, 64}}) {
            check(linear_relu(m, n, k, transposed));
            check(product(m, n, k, transposed));
        }
    }
    check(softmax_of_product(9, 33, 20));
    check(softmax_of_product(64, 64, 64));
}

TEST_CASE("windows") {
    check(convolution(3, 8, 16, 1, 1));
    check(convolution(2, 5, 9, 2, 0));
    check(convolution(4, 3, 5, 1, 2));
    check(convolution(1, 1, 3, 1, 0));
}

TEST_CASE("scans") {
    for (const int axis : {0, 1}) {
        for (auto [rows, columns] : {std::pair(4, 64), {3, 37}, {1, 1}, {0, 8}, {5, 0}, {33, 20}}) {
            check(cumulative_sum(rows, columns, axis));
        }
    }
}

TEST_CASE("gathers and scatters") {
    for (auto [rows, width, count] : {std::array{10, 64, 20}, {3, 5, 7}, {4, 1, 1}, {6, 33, 0}}) {
        check(gather_rows(rows, width, count));
        check(scatter_add(rows, width, count));
    }
}
