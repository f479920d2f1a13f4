// Products of half types on the matrix unit, on the host emulation of the copy unit, barriers and warpgroups, against the CPU target.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/product_schedule.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Runs the program's product with one tile; empty where the emulation agrees with the CPU target.
std::string check_tile(const std::string &lines, const ProductTile &tile, GpuFacts facts = gpu_facts("sm_90a")) {
    return check_scheduled(
        lines,
        [&](const Kernel &kernel) {
            const auto product = match_matrix_product(kernel, facts);
            return product ? std::optional(product_schedule(*product, tile)) : std::nullopt;
        },
        facts, 2e-2);
}

std::string product(const std::string &type, const std::string &a, const std::string &b, const std::string &y) {
    return "%a : " + type + a + " = placeholder\n%b : " + type + b + " = placeholder\n%y : " + type + y +
           " = call_function aten.mm.default(self=%a, mat2=%b)\n%output = output(values=[%y])";
}

const ProductTile small{64, 64, 1, 2, 8};

}  // namespace

TEST_CASE("blocks that share terms: the second pass has a block for a piece of each row, once") {
    const std::string lines = product("bfloat16", "[64, 512]", "[512, 128]", "[64, 128]");
    ProductTile tile = small;
    tile.parts = 2;
    tile.cluster = false;
    const GpuFacts facts = gpu_facts("sm_90a");
    const std::vector<Kernel> kernels = kernels_from(lines.c_str());
    const CudaKernelCode code = lower_cuda(kernels[0], product_schedule(*match_matrix_product(kernels[0], facts), tile), facts);
    REQUIRE(code.launches.size() == 2);
    CHECK(code.launches[1].grid[0] == Extent(64));
    CHECK(check_tile(lines, tile) == "");
}

TEST_CASE("a product whose right operand runs along the columns, tails in M, N and K") {
    CHECK(check_tile(product("bfloat16", "[70, 72]", "[72, 88]", "[70, 88]"), small) == "");
    CHECK(check_tile(product("float16", "[64, 136]", "[136, 64]", "[64, 64]"), {64, 64, 1, 3, 8}) == "");
}

TEST_CASE("several blocks a multiprocessor: persistent, and sharing terms") {
    ProductTile tile = small;
    tile.residents = 3;
    const std::string lines = product("bfloat16", "[70, 256]", "[256, 88]", "[70, 88]");
    CHECK(check_tile(lines, tile) == "");
    tile.parts = 2;
    CHECK(check_tile(lines, tile) == "");
}

TEST_CASE("a linear layer: both operands along K, bias and residual in the epilogue") {
    CHECK(check_tile("%x : bfloat16[2, 40, 128] = placeholder\n%w : bfloat16[72, 128] = placeholder\n%c : bfloat16[72] = placeholder\n%r : "
                     "bfloat16[2, 40, 72] = placeholder\n"
                     "%l : bfloat16[2, 40, 72] = call_function aten.linear.default(input=%x, weight=%w, bias=%c)\n"
                     "%g : bfloat16[2, 40, 72] = call_function aten.relu.default(self=%l)\n"
                     "%y : bfloat16[2, 40, 72] = call_function aten.add.Tensor(self=%g, other=%r)\n%output = output(values=[%y])",
                     small) == "");
}

TEST_CASE("a strip's residual is loaded a strip ahead, the first while the unit multiplies") {
    const std::string lines =
        "%x : bfloat16[70, 128] = placeholder\n%w : bfloat16[128, 128] = placeholder\n%r : bfloat16[70, 128] = placeholder\n"
        "%l : bfloat16[70, 128] = call_function aten.linear.default(input=%x, weight=%w)\n"
        "%y : bfloat16[70, 128] = call_function aten.add.Tensor(self=%l, other=%r)\n%output = output(values=[%y])";
    const GpuFacts facts = gpu_facts("sm_90a");
    const std::vector<Kernel> kernels = kernels_from(lines.c_str());
    for (const ProductTile &tile : {ProductTile{64, 128, 1, 2, 8}, ProductTile{128, 128, 1, 2, 8}}) {
        const std::string source = lower_cuda(kernels[0], product_schedule(*match_matrix_product(kernels[0], facts), tile), facts).source;
        const std::size_t multiply = source.find("multiply_tiles"), strips = source.find("stage_begin"), first = source.find("load<8>(in2");
        CHECK((first < multiply) == (tile.m == 64));  // of two chunks of rows, each loads its own
        CHECK(first < strips);
        CHECK(check_tile(lines, tile) == "");
    }
}

TEST_CASE("batch axes of any name: rows that were fused to an axis of one place") {
    CHECK(check_tile("%a : bfloat16[1, 1, 72] = placeholder\n%b : bfloat16[1, 72, 64] = placeholder\n"
                     "%y : bfloat16[1, 1, 64] = call_function aten.bmm.default(self=%a, mat2=%b)\n%output = output(values=[%y])",
                     small) == "");
}

TEST_CASE("a batch that a reshape made of two dimensions lies as those did") {
    CHECK(check_tile(
              "%x : bfloat16[2, 70, 3, 64] = placeholder\n%b : bfloat16[6, 64, 72] = placeholder\n"
              "%t : bfloat16[2, 3, 70, 64] = call_function aten.permute.default(self=%x, dims=[0, 2, 1, 3])\n"
              "%a : bfloat16[6, 70, 64] = call_function aten.reshape.default(self=%t, shape=[6, 70, 64])\n"
              "%p : bfloat16[6, 70, 72] = call_function aten.bmm.default(self=%a, mat2=%b)\n"
              "%y : bfloat16[2, 3, 70, 72] = call_function aten.view.default(self=%p, size=[2, 3, 70, 72])\n%output = output(values=[%y])",
              small) == "");
}

TEST_CASE("a batch that the right operand does not vary along, in front of one that it does") {
    CHECK(check_tile("%a : bfloat16[2, 3, 70, 64] = placeholder\n%b : bfloat16[3, 64, 72] = placeholder\n"
                     "%y : bfloat16[2, 3, 70, 72] = call_function aten.matmul.default(self=%a, other=%b)\n%output = output(values=[%y])",
                     small) == "");
}

TEST_CASE("a transposed left operand") {
    CHECK(check_tile("%a : bfloat16[64, 72] = placeholder\n%b : bfloat16[64, 64] = placeholder\n"
                     "%t : bfloat16[72, 64] = call_function aten.permute.default(self=%a, dims=[1, 0])\n"
                     "%y : bfloat16[72, 64] = call_function aten.mm.default(self=%t, mat2=%b)\n%output = output(values=[%y])",
                     small) == "");
}

TEST_CASE("batches, two warpgroups, tiles in turn on few persistent blocks") {
    GpuFacts few = gpu_facts("sm_90a");
    few.multiprocessors = 2;
    const std::string batches =
        "%a : float16[3, 130, 64] = placeholder\n%b : float16[3, 64, 64] = placeholder\n"
        "%y : float16[3, 130, 64] = call_function aten.bmm.default(self=%a, mat2=%b)\n%output = output(values=[%y])";
    CHECK(check_tile(batches, {128, 64, 2, 2, 8}, few) == "");
    CHECK(check_tile(product("bfloat16", "[200, 128]", "[128, 136]", "[200, 136]"), {64, 64, 1, 2, 2}, few) == "");
}

TEST_CASE("warpgroups take turns: one multiplies while another stores its part") {
    GpuFacts few = gpu_facts("sm_90a");
    few.multiprocessors = 2;
    ProductTile turns{128, 64, 2, 2, 8};
    turns.takes_turns = true;
    CHECK(check_tile(product("bfloat16", "[300, 200]", "[200, 136]", "[300, 136]"), turns, few) == "");
    ProductTile chunks{256, 64, 2, 3, 8};
    chunks.takes_turns = true;
    CHECK(check_tile(product("float16", "[300, 64]", "[64, 88]", "[300, 88]"), chunks, few) == "");
}

TEST_CASE("rows that begin at any element are stored by threads, in whole pieces of 16 bytes but for their ends") {
    const std::string odd =
        "%x : bfloat16[70, 64] = placeholder\n%w : bfloat16[211, 64] = placeholder\n%y : bfloat16[70, 211] = call_function "
        "aten.linear.default(input=%x, weight=%w)\n%output = output(values=[%y])";
    CHECK(check_tile(odd, {64, 64, 1, 2, 8}) == "");
    CHECK(check_tile(odd, {64, 96, 1, 2, 8}) == "");
    CHECK(check_tile(odd, {128, 192, 2, 2, 8}) == "");
    const std::string wide =
        "%x : float16[2, 35, 64] = placeholder\n%w : float16[83, 64] = placeholder\n%m : float16[2, 35, 83] = call_function "
        "aten.linear.default(input=%x, weight=%w)\n%y : float32[2, 35, 83] = call_function prims.convert_element_type(a=%m, "
        "dtype=torch.float32, explicit=false)\n"
        "%output = output(values=[%y, %m])";
    CHECK(check_tile(wide, {64, 64, 1, 2, 8}) == "");
    CHECK(check_tile(wide, {128, 96, 2, 2, 8}) == "");
}

TEST_CASE("several chunks of rows for each warpgroup") {
    CHECK(check_tile(product("bfloat16", "[150, 64]", "[64, 40]", "[150, 40]"), {128, 64, 1, 2, 8}) == "");
}

TEST_CASE("the blocks of a cluster share a tile's terms") {
    ProductTile shared = small;
    shared.parts = 2;
    CHECK(check_tile(product("bfloat16", "[70, 200]", "[200, 88]", "[70, 88]"), shared) == "");
    CHECK(check_tile(product("float16", "[130, 320]", "[320, 64]", "[130, 64]"), {128, 64, 2, 2, 8, 4}) == "");
}

TEST_CASE("a second pass adds up what the blocks that share a tile's terms leave") {
    ProductTile shared{64, 64, 1, 2, 8, 3};
    shared.cluster = false;
    CHECK(check_tile(product("bfloat16", "[70, 200]", "[200, 88]", "[70, 88]"), shared) == "");
    const std::string odd =
        "%x : bfloat16[2, 35, 192] = placeholder\n%w : bfloat16[83, 192] = placeholder\n%c : bfloat16[83] = placeholder\n"
        "%y : bfloat16[2, 35, 83] = call_function aten.linear.default(input=%x, weight=%w, bias=%c)\n%output = output(values=[%y])";
    CHECK(check_tile(odd, shared) == "");
}

TEST_CASE("few rows: the unit's rows are the product's columns") {
    const std::string linear =
        "%x : bfloat16[5, 136] = placeholder\n%w : bfloat16[72, 136] = placeholder\n%c : bfloat16[72] = placeholder\n"
        "%y : bfloat16[5, 72] = call_function aten.linear.default(input=%x, weight=%w, bias=%c)\n%output = output(values=[%y])";
    CHECK(check_tile(linear, {64, 8, 1, 2, 8, 1, true}) == "");
    CHECK(check_tile(linear, {64, 16, 1, 3, 8, 2, true}) == "");
    CHECK(check_tile("%x : bfloat16[1, 64] = placeholder\n%w : bfloat16[136, 64] = placeholder\n"
                     "%y : bfloat16[1, 136] = call_function aten.linear.default(input=%x, weight=%w)\n%output = output(values=[%y])",
                     {128, 8, 2, 2, 8, 1, true}) == "");
}

TEST_CASE("results of several types and widths: staged in strips, or stored directly where strides do not allow it") {
    const std::string even =
        "%x : float16[70, 64] = placeholder\n%w : float16[88, 64] = placeholder\n%y : float16[70, 88] = call_function "
        "aten.linear.default(input=%x, weight=%w)\n%output = output(values=[%y])";
    CHECK(check_tile(even, {64, 96, 1, 2, 8}) == "");
    CHECK(check_tile(even, {64, 48, 1, 2, 8}) == "");
    const std::string odd =
        "%x : bfloat16[70, 64] = placeholder\n%w : bfloat16[83, 64] = placeholder\n%y : bfloat16[70, 83] = call_function "
        "aten.linear.default(input=%x, weight=%w)\n%output = output(values=[%y])";
    CHECK(check_tile(odd, small) == "");
    const std::string wide =
        "%x : bfloat16[70, 64] = placeholder\n%w : bfloat16[88, 64] = placeholder\n%y : bfloat16[70, 88] = call_function "
        "aten.linear.default(input=%x, weight=%w)\n%z : float32[70, 88] = call_function prims.convert_element_type(a=%y, "
        "dtype=torch.float32, explicit=false)\n"
        "%e : float32[70, 88] = call_function aten.exp.default(self=%z)\n%output = output(values=[%y, %e])";
    CHECK(check_tile(wide, small) == "");
}

TEST_CASE("two products that share an operand meet in one kernel") {
    const std::string gated =
        "%x : bfloat16[70, 72] = placeholder\n%u : bfloat16[88, 72] = placeholder\n%v : bfloat16[88, 72] = placeholder\n"
        "%a : bfloat16[70, 88] = call_function aten.linear.default(input=%x, weight=%u)\n"
        "%b : bfloat16[70, 88] = call_function aten.linear.default(input=%x, weight=%v)\n"
        "%s : bfloat16[70, 88] = call_function aten.silu.default(self=%a)\n"
        "%y : bfloat16[70, 88] = call_function aten.mul.Tensor(self=%s, other=%b)\n%output = output(values=[%y])";
    CHECK(check_tile(gated, small) == "");
    CHECK(check_tile(gated, {64, 64, 1, 2, 8, 2}) == "");
}

TEST_CASE("an operand that is computed from what is fetched: dequantised weights, scaled rows") {
    const std::string weights =
        "%x : bfloat16[5, 136] = placeholder\n%q : int8[72, 144] = placeholder\n%s : bfloat16[72] = placeholder\n"
        "%v : int8[72, 136] = call_function aten.slice.Tensor(self=%q, dim=1, start=0, end=136)\n"
        "%w : bfloat16[72, 136] = call_function prims.convert_element_type(a=%v, dtype=torch.bfloat16, explicit=true)\n"
        "%l : bfloat16[5, 72] = call_function aten.linear.default(input=%x, weight=%w)\n"
        "%y : bfloat16[5, 72] = call_function aten.mul.Tensor(self=%l, other=%s)\n%output = output(values=[%y])";
    CHECK(check_tile(weights, {64, 8, 1, 2, 8, 1, true}) == "");
    CHECK(check_tile(weights, {128, 16, 2, 3, 8, 2, true}) == "");
    const std::string row =
        "%x : bfloat16[1, 128] = placeholder\n%q : int8[72, 128] = placeholder\n%s : bfloat16[72] = placeholder\n"
        "%w : bfloat16[72, 128] = call_function prims.convert_element_type(a=%q, dtype=torch.bfloat16, explicit=true)\n"
        "%l : bfloat16[1, 72] = call_function aten.linear.default(input=%x, weight=%w)\n"
        "%y : bfloat16[1, 72] = call_function aten.mul.Tensor(self=%l, other=%s)\n%output = output(values=[%y])";
    CHECK(check_tile(row, {64, 8, 1, 2, 8, 1, true}) == "");
    const std::string scaled =
        "%x : bfloat16[70, 72] = placeholder\n%s : bfloat16[70, 1] = placeholder\n%w : bfloat16[88, 72] = placeholder\n"
        "%n : bfloat16[70, 72] = call_function aten.mul.Tensor(self=%x, other=%s)\n"
        "%y : bfloat16[70, 88] = call_function aten.linear.default(input=%n, weight=%w)\n%output = output(values=[%y])";
    CHECK(check_tile(scaled, small) == "");
}
