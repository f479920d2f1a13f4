// Convolutions of half types on the matrix unit, on the host emulation of copies of pixels, against the CPU target.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "dsl/error.h"
#include "lowering/cuda_schedules/convolution_schedule.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

const ProductTile small{64, 64, 1, 2, 8};

/// Runs the program's convolution with one tile; empty where the emulation agrees with the CPU target.
std::string check_tile(
    const std::string &lines, const ProductTile &tile = small, const std::function<void(Directives &)> &edit = [](Directives &) {}) {
    GpuFacts few = gpu_facts("sm_90a");
    few.multiprocessors = 2;
    return check_scheduled(
        lines,
        [&](const Kernel &kernel) {
            const auto convolution = match_convolution(kernel, few);
            auto directives = convolution ? std::optional(convolution_schedule(*convolution, tile)) : std::nullopt;
            if (directives) {
                edit(*directives);
            }
            return directives;
        },
        few, 2e-2);
}

/// Channels innermost: of a tensor [N, C, H, W] its type as the program text has it.
std::string last(int n, int c, int h, int w) {
    return fmt::format("bfloat16[{}, {}, {}, {}] strides=[{}, 1, {}, {}]", n, c, h, w, h * w * c, w * c, c);
}
std::string convolution(const std::string &x, const std::string &w, const std::string &y, const std::string &how) {
    return "%x : " + x + " = placeholder\n%w : " + w + " = placeholder\n%y : " + y +
           " = call_function aten.conv2d.default(input=%x, weight=%w, " + how + ")\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("3x3 with padding, channels that fill no tile") {
    CHECK(check_tile(convolution(last(2, 40, 7, 9), last(72, 40, 3, 3), last(2, 72, 7, 9), "padding=[1, 1]")) == "");
}

TEST_CASE("channels that are no multiple of what the copy unit moves, in padded pixels and as a slice of them") {
    const std::string x = "bfloat16[2, 26, 7, 9] strides=[2016, 1, 288, 32]", slice = "bfloat16[2, 26, 7, 9] strides=[3528, 1, 504, 56]";
    const std::string w = "bfloat16[20, 26, 3, 3] strides=[288, 1, 96, 32]", y = "bfloat16[2, 20, 7, 9] strides=[1512, 1, 216, 24]";
    CHECK(check_tile(convolution(x, w, y, "padding=[1, 1]"), {64, 32, 1, 2, 8}) == "");
    CHECK(check_tile(convolution(slice + " offset=26", w, y, "padding=[1, 1]"), {64, 32, 1, 2, 8}) == "");
    ProductTile windows{128, 32, 2, 2, 8};
    windows.windows = true;
    CHECK(check_tile(convolution(slice + " offset=26", w, y, "padding=[1, 1]"), windows) == "");
}

TEST_CASE("stride, dilation, uneven padding") {
    CHECK(check_tile(convolution(last(3, 64, 9, 8), last(64, 64, 3, 3), last(3, 64, 5, 4), "stride=[2, 2], padding=[1, 1]")) == "");
    CHECK(check_tile(convolution(last(1, 72, 9, 11), last(64, 72, 3, 2), last(1, 64, 5, 12),
                                 "stride=[1, 1], padding=[0, 2], dilation=[2, 3]")) == "");
}

TEST_CASE("1x1, plain and strided") {
    CHECK(check_tile(convolution(last(2, 64, 6, 7), last(96, 64, 1, 1), last(2, 96, 6, 7), "padding=[0, 0]"), {64, 96, 1, 2, 8}) == "");
    CHECK(check_tile(convolution(last(2, 64, 7, 7), last(64, 64, 1, 1), last(2, 64, 4, 4), "stride=[2, 2]")) == "");
}

TEST_CASE("weights that stay in shared memory for all tiles") {
    ProductTile tile{64, 64, 1, 3, 8};
    tile.keeps_right = true;
    const std::string lines = convolution(last(3, 72, 9, 8), last(40, 72, 3, 3), last(3, 40, 9, 8), "padding=[1, 1]");
    CHECK(check_tile(lines, tile) == "");
    tile.m = 128;
    tile.warpgroups = 2;  // in turn
    CHECK(check_tile(lines, tile) == "");
}

TEST_CASE("weights stay only where all tiles share them") {
    ProductTile tile = small;
    tile.keeps_right = true;
    CHECK_THROWS_WITH_AS(check_tile(convolution(last(1, 64, 8, 8), last(128, 64, 1, 1), last(1, 128, 8, 8), "padding=[0, 0]"), tile),
                         doctest::Contains("it is not the same for all tiles"), UserError);
}

TEST_CASE("pixels come once for the taps along the innermost axis") {
    ProductTile tile{64, 64, 1, 2, 8};
    tile.windows = true;
    CHECK(check_tile(convolution(last(2, 40, 7, 9), last(72, 40, 3, 3), last(2, 72, 7, 9), "padding=[1, 1]"), tile) == "");
    CHECK(check_tile(convolution(last(3, 136, 9, 8), last(40, 136, 3, 3), last(3, 40, 5, 6), "stride=[2, 1], padding=[1, 0]"), tile) == "");
    CHECK(check_tile(convolution(last(1, 72, 9, 11), last(64, 72, 3, 4), last(1, 64, 9, 4), "padding=[1, 1], dilation=[1, 3]"), tile) ==
          "");
    tile = {128, 32, 2, 3, 8};
    tile.windows = true;
    CHECK(check_tile(convolution(last(2, 64, 1, 40), last(32, 64, 1, 5), last(2, 32, 1, 40), "padding=[0, 2]"), tile) == "");
    tile.keeps_right = true;  // in turn
    CHECK(check_tile(convolution(last(2, 72, 9, 8), last(32, 72, 3, 3), last(2, 32, 9, 8), "padding=[1, 1]"), tile) == "");
}

TEST_CASE("pixels come once only where lines have places for their windows") {
    ProductTile tile = small;
    tile.windows = true;
    const auto refusal = [&](const std::string &name, std::size_t argument, const DirectiveArgument &value) {
        const auto edit = [&](Directives &directives) {
            std::find_if(directives.begin(), directives.end(), [&](const Directive &d) {
                return d.name == name && (name != "compute_at" || says(d.stage, ".in("));
            })->arguments.at(argument) = value;
        };
        return refusal_of(
            [&] { check_tile(convolution(last(2, 40, 7, 9), last(72, 40, 3, 3), last(2, 72, 7, 9), "padding=[1, 1]"), tile, edit); });
    };
    CHECK(says(refusal("split", 3, std::int64_t{10}),
               "windows of neighbouring rows overlap along an axis of 10 places; split that axis by 11 before it is fused"));
    CHECK(says(refusal("compute_at", 1, std::string("r2")), "the loop 'r2' does not stand right outside of the innermost taps"));
    CHECK(says(refusal("compute_at", 1, std::string("ko")), "the loop 'ko' does not stand right outside of the innermost taps"));
}

TEST_CASE("blocks of a cluster share the taps") {
    ProductTile tile{64, 64, 1, 2, 8};
    tile.parts = 2;
    CHECK(check_tile(convolution(last(2, 64, 7, 7), last(64, 64, 3, 3), last(2, 64, 7, 7), "padding=[1, 1]"), tile) == "");
}

TEST_CASE("one dimension of space") {
    CHECK(check_tile(
              "%x : bfloat16[2, 64, 20] strides=[1280, 1, 64] = placeholder\n%w : bfloat16[64, 64, 5] strides=[320, 1, 64] = placeholder\n"
              "%y : bfloat16[2, 64, 20] strides=[1280, 1, 64] = call_function aten.conv1d.default(input=%x, weight=%w, padding=[2])\n"
              "%output = output(values=[%y])") == "");
}

TEST_CASE("an output that runs along its pixels") {
    CHECK(check_tile(convolution(last(2, 64, 8, 8), last(64, 64, 3, 3), "bfloat16[2, 64, 8, 8]", "padding=[1, 1]")) == "");
}

TEST_CASE("scale, shift, residual and relu in the epilogue, two warpgroups") {
    const std::string t = last(1, 64, 12, 12);
    CHECK(check_tile("%x : " + t + " = placeholder\n%w : " + last(64, 64, 3, 3) +
                         " = placeholder\n%s : bfloat16[1, 64, 1, 1] = placeholder\n%r : " + t + " = placeholder\n%c : " + t +
                         " = call_function aten.conv2d.default(input=%x, weight=%w, padding=[1, 1])\n%m : " + t +
                         " = call_function aten.mul.Tensor(self=%c, other=%s)\n%a : " + t +
                         " = call_function aten.add.Tensor(self=%m, other=%r)\n%y : " + t +
                         " = call_function aten.relu.default(self=%a)\n%output = output(values=[%y])",
                     {128, 64, 2, 3, 8}) == "");
}

TEST_CASE("groups of channels, a group or a part of it a tile") {
    const std::string twelve = last(2, 48, 7, 9), weights = last(48, 24, 3, 3);
    CHECK(check_tile(convolution(twelve, weights, twelve, "padding=[1, 1], groups=2"), {64, 24, 1, 2, 8}) == "");
    CHECK(check_tile(convolution(twelve, weights, last(2, 48, 4, 5), "stride=[2, 2], padding=[1, 1], groups=2"), {128, 8, 2, 3, 8}) == "");
    CHECK(check_tile(convolution(last(1, 144, 5, 6), last(96, 72, 3, 3), last(1, 96, 5, 6), "padding=[1, 1], groups=2"),
                     {64, 48, 1, 2, 8}) == "");
    CHECK(check_tile(
              "%x : bfloat16[2, 64, 20] strides=[1280, 1, 64] = placeholder\n%w : bfloat16[64, 16, 6] strides=[96, 1, 16] = placeholder\n"
              "%y : bfloat16[2, 64, 21] strides=[1344, 1, 64] = call_function aten.conv1d.default(input=%x, weight=%w, padding=[3], "
              "groups=4)\n"
              "%output = output(values=[%y])",
              {64, 16, 1, 2, 8}) == "");
}

TEST_CASE("a tile multiplies one group of channels") {
    CHECK_THROWS_WITH_AS(check_tile(convolution(last(1, 48, 8, 8), last(48, 24, 1, 1), last(1, 48, 8, 8), "groups=2"), {64, 16, 1, 2, 8}),
                         doctest::Contains("16 columns are no part of a group of 24"), UserError);
}
