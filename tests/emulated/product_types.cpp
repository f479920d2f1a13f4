// Products of integers, floats of 8 bits and float32 on the matrix unit, on its host emulation, against the CPU target.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/product_schedule.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string check_tile(const std::string &lines, const ProductTile &tile, double tolerance) {
    const GpuFacts facts = gpu_facts("sm_90a");
    return check_scheduled(lines, [&](const Kernel &kernel) {
        const auto product = match_matrix_product(kernel, facts);
        return product ? std::optional(product_schedule(*product, tile)) : std::nullopt;
    }, facts, tolerance);
}

/// %x times the transpose of %w, as the lines after them say.
std::string rows_times_rows(const std::string &x, const std::string &w, const std::string &rest) {
    const std::string sizes = w.substr(w.find('[') + 1), n = sizes.substr(0, sizes.find(',')), k = sizes.substr(sizes.find(',') + 2, sizes.find(']') - sizes.find(',') - 2);
    return "%x : " + x + " = placeholder\n%w : " + w + " = placeholder\n%t : " + w.substr(0, w.find('[')) + "[" + k + ", " + n +
           "] = call_function aten.permute.default(self=%w, dims=[1, 0])\n" + rest + "\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("int8 times int8: sums of 32 bits, tails, stored as they are or scaled to bfloat16") {
    CHECK(check_tile(rows_times_rows("int8[70, 144]", "int8[40, 144]", "%y : int32[70, 40] = call_function aten._int_mm.default(self=%x, mat2=%t)"), {64, 64, 1, 2, 8}, 0) == "");
    const std::string scaled = "%p : int32[70, 96] = call_function aten._int_mm.default(self=%x, mat2=%t)\n"
                               "%f : float32[70, 96] = call_function aten._to_copy.default(self=%p, dtype=torch.float32)\n"
                               "%m : float32[70, 96] = call_function aten.mul.Tensor(self=%f, other=0.125)\n"
                               "%y : bfloat16[70, 96] = call_function aten._to_copy.default(self=%m, dtype=torch.bfloat16)";
    CHECK(check_tile(rows_times_rows("int8[70, 256]", "int8[96, 256]", scaled), {128, 32, 2, 2, 8}, 0) == "");
    CHECK(check_tile(rows_times_rows("int8[70, 256]", "int8[96, 256]", scaled), {64, 32, 1, 2, 8, 2}, 0) == "");
}

TEST_CASE("uint8 times int8, widened by the program") {
    CHECK(check_tile(rows_times_rows("uint8[64, 128]", "int8[64, 128]",
                                     "%a : int32[64, 128] = call_function aten._to_copy.default(self=%x, dtype=torch.int32)\n"
                                     "%b : int32[128, 64] = call_function aten._to_copy.default(self=%t, dtype=torch.int32)\n"
                                     "%y : int32[64, 64] = call_function aten.mm.default(self=%a, mat2=%b)"), {64, 64, 1, 2, 8}, 0) == "");
}

TEST_CASE("float8 with one scale, and with a scale for each row and column; few rows") {
    const std::string scales = "%s : float32[] = placeholder\n%u : float32[] = placeholder\n";
    const std::string product = "%y : bfloat16[70, 64] = call_function aten._scaled_mm.default(self=%x, mat2=%t, scale_a=%s, scale_b=%u, out_dtype=torch.bfloat16)";
    CHECK(check_tile(scales + rows_times_rows("float8_e4m3fn[70, 144]", "float8_e4m3fn[64, 144]", product), {64, 64, 1, 2, 8}, 1e-2) == "");
    CHECK(check_tile(scales + rows_times_rows("float8_e5m2[70, 144]", "float8_e4m3fn[64, 144]", product), {64, 64, 1, 2, 8}, 1e-2) == "");
    ProductTile turned{64, 8, 1, 2, 8};
    turned.turned = true;
    CHECK(check_tile("%s : float32[5, 1] = placeholder\n%u : float32[1, 64] = placeholder\n" +
                         rows_times_rows("float8_e4m3fn[5, 256]", "float8_e4m3fn[64, 256]",
                                         "%y : bfloat16[5, 64] = call_function aten._scaled_mm.default(self=%x, mat2=%t, scale_a=%s, scale_b=%u, out_dtype=torch.bfloat16)"),
                     turned, 1e-2) == "");
}

TEST_CASE("float32 as tf32 where the schedule says so") {
    const std::string lines = rows_times_rows("float32[70, 72]", "float32[40, 72]", "%y : float32[70, 40] = call_function aten.mm.default(self=%x, mat2=%t)");
    CHECK(check_scheduled(lines, [&](const Kernel &kernel) {
              MatrixProduct product;
              product.products = product.outputs = {kernel.algorithm.stages.back().name()};
              product.rows = {0};
              product.columns = 1;
              product.bytes = 4;
              Directives directives = product_schedule(product, {64, 64, 1, 2, 8});
              directives.push_back({product.products[0], "precision", {std::string("tf32")}, {}, {}});
              return std::optional(directives);
          }, gpu_facts("sm_90a"), 2e-2) == "");
}
