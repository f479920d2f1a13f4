// Products of integers, floats of 8 bits and float32 on the matrix unit, on its host emulation, against the CPU target.
#include <doctest/doctest.h>

#include <algorithm>

#include "lowering/cuda_schedules/product_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/tensor_elements.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

std::string check_tile(const std::string &lines, const ProductTile &tile, double tolerance) {
    const GpuFacts facts = gpu_facts("sm_90a");
    return check_scheduled(
        lines,
        [&](const Kernel &kernel) {
            const auto product = match_matrix_product(kernel, facts);
            return product ? std::optional(product_schedule(*product, tile)) : std::nullopt;
        },
        facts, tolerance);
}

/// %x times the transpose of %w, as the lines after them say.
std::string rows_times_rows(const std::string &x, const std::string &w, const std::string &rest) {
    const std::string sizes = w.substr(w.find('[') + 1), n = sizes.substr(0, sizes.find(',')),
                      k = sizes.substr(sizes.find(',') + 2, sizes.find(']') - sizes.find(',') - 2);
    return "%x : " + x + " = placeholder\n%w : " + w + " = placeholder\n%t : " + w.substr(0, w.find('[')) + "[" + k + ", " + n +
           "] = call_function aten.permute.default(self=%w, dims=[1, 0])\n" + rest + "\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("int8 times int8: sums of 32 bits, tails, stored as they are or scaled to bfloat16") {
    CHECK(check_tile(rows_times_rows("int8[70, 144]", "int8[40, 144]",
                                     "%y : int32[70, 40] = call_function aten._int_mm.default(self=%x, mat2=%t)"),
                     {64, 64, 1, 2, 8}, 0) == "");
    const std::string scaled =
        "%p : int32[70, 96] = call_function aten._int_mm.default(self=%x, mat2=%t)\n"
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
                                     "%y : int32[64, 64] = call_function aten.mm.default(self=%a, mat2=%b)"),
                     {64, 64, 1, 2, 8}, 0) == "");
}

TEST_CASE("float8 with one scale, and with a scale for each row and column; few rows") {
    const std::string scales = "%s : float32[] = placeholder\n%u : float32[] = placeholder\n";
    const std::string product =
        "%y : bfloat16[70, 64] = call_function aten._scaled_mm.default(self=%x, mat2=%t, scale_a=%s, scale_b=%u, out_dtype=torch.bfloat16)";
    CHECK(check_tile(scales + rows_times_rows("float8_e4m3fn[70, 144]", "float8_e4m3fn[64, 144]", product), {64, 64, 1, 2, 8}, 1e-2) == "");
    CHECK(check_tile(scales + rows_times_rows("float8_e5m2[70, 144]", "float8_e4m3fn[64, 144]", product), {64, 64, 1, 2, 8}, 1e-2) == "");
    ProductTile turned{64, 8, 1, 2, 8};
    turned.turned = true;
    CHECK(check_tile("%s : float32[5, 1] = placeholder\n%u : float32[1, 64] = placeholder\n" +
                         rows_times_rows("float8_e4m3fn[5, 256]", "float8_e4m3fn[64, 256]",
                                         "%y : bfloat16[5, 64] = call_function aten._scaled_mm.default(self=%x, mat2=%t, scale_a=%s, "
                                         "scale_b=%u, out_dtype=torch.bfloat16)"),
                     turned, 1e-2) == "");
}

TEST_CASE("float32 as tf32 where the schedule says so: elements are rounded, not cut") {
    const std::string lines =
        rows_times_rows("float32[70, 72]", "float32[40, 72]", "%y : float32[70, 40] = call_function aten.mm.default(self=%x, mat2=%t)");
    const auto with_tf32 = [](const Kernel &kernel) {
        MatrixProduct product;
        product.products = product.outputs = {kernel.algorithm.stages.back().name()};
        product.rows = {0};
        product.columns = 1;
        product.bytes = 4;
        Directives directives = product_schedule(product, {64, 64, 1, 2, 8});
        directives.push_back({product.products[0], "precision", {std::string("tf32")}, {}, {}});
        return std::optional(directives);
    };
    CHECK(check_scheduled(lines, with_tf32, gpu_facts("sm_90a"), 2e-2) == "");
    const Kernel kernel = kernels_from(lines.c_str()).back();
    std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1);
    constexpr float step = 1.0F / 1024;  // of tf32, above 1
    std::ranges::fill(elements<float>(inputs[0]), 1 + 0.75F * step);
    std::ranges::fill(elements<float>(inputs[1]), 1.0F);
    CHECK(elements<float>(run_emulated(kernel, *with_tf32(kernel), inputs).at(0))[0] == doctest::Approx(72 * (1 + step)).epsilon(1e-6));
}

TEST_CASE("weights of 8 bits in groups that share a scale, as a view of theirs says; an infinite scale stays within its group") {
    const std::string lines =
        "%x : bfloat16[70, 192] = placeholder\n%q : int8[64, 192] = placeholder\n%s : bfloat16[64, 3] = placeholder\n"
        "%v : int8[64, 3, 64] = call_function aten.view.default(self=%q, size=[64, 3, 64])\n"
        "%f : bfloat16[64, 3, 64] = call_function aten._to_copy.default(self=%v, dtype=torch.bfloat16)\n"
        "%u : bfloat16[64, 3, 1] = call_function aten.unsqueeze.default(self=%s, dim=-1)\n"
        "%m : bfloat16[64, 3, 64] = call_function aten.mul.Tensor(self=%f, other=%u)\n"
        "%w : bfloat16[64, 192] = call_function aten.view.default(self=%m, size=[64, 192])\n"
        "%t : bfloat16[192, 64] strides=[1, 192] = call_function aten.permute.default(self=%w, dims=[1, 0])\n"
        "%y : bfloat16[70, 64] = call_function aten.mm.default(self=%x, mat2=%t)\n%output = output(values=[%y])";
    const std::vector<Kernel> kernels = kernels_from(lines.c_str());
    REQUIRE(kernels.size() == 1);
    const GpuFacts facts = gpu_facts("sm_90a");
    const auto product = match_matrix_product(kernels[0], facts);
    REQUIRE(product);
    ProductTile tile{64, 32, 1, 2, 8};
    tile.turned = true;
    tile.residents = 2;
    std::vector<HostTensor> inputs = random_inputs(kernels[0], {}, 1);
    constexpr std::uint16_t infinity = 0x7f80, exponent = 0x7f80;  // of bfloat16
    elements<std::uint16_t>(inputs[2])[1 * 3 + 1] = infinity;
    const auto actual = run_emulated(kernels[0], product_schedule(*product, tile), inputs);
    CHECK(first_difference(actual, run_on_cpu(kernels[0], {}, inputs, {}), 2e-2) == "");
    CHECK((elements<std::uint16_t>(actual.at(0))[0] & exponent) != exponent);
    CHECK((elements<std::uint16_t>(actual.at(0))[1] & exponent) == exponent);
}
