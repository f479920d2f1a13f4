// Attention in one kernel, on the host emulation of the copy unit, barriers and warpgroups, against the CPU target.
#include <doctest/doctest.h>

#include "lowering/cuda_schedules/streaming_schedule.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/program_text.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Runs the program's one kernel, streamed; empty where the emulation agrees with the CPU target.
std::string check_streamed(const std::string &lines, const StreamTile &tile, const SymbolValues &symbols = {}) {
    GpuFacts facts = gpu_facts("sm_90a");
    facts.multiprocessors = 2;  // so that persistent blocks take several pieces each
    Program program = program_from(lines.c_str());
    functionalize(program);
    decompose(program);
    FusionOptions options;
    options.streaming = true;
    const Partition parts = partition(translate(program).algorithm, options);
    for (const Kernel &kernel : parts.kernels) {
        if (const auto form = match_streaming(kernel.algorithm, facts)) {
            const std::vector<HostTensor> inputs = random_inputs(kernel, symbols, 1);
            const Directives directives = streaming_schedule(*form, kernel.algorithm, tile);
            return first_difference(run_emulated(kernel, directives, inputs, symbols, facts), run_on_cpu(kernel, {}, inputs, symbols),
                                    2e-2);
        }
    }
    return "no kernel streams";
}

/// Placeholders q, k, v of these sizes, and what follows.
std::string attention(const std::string &type, const std::string &q, const std::string &k, const std::string &v, const std::string &rest) {
    return "%q : " + type + q + " = placeholder\n%k : " + type + k + " = placeholder\n%v : " + type + v + " = placeholder\n" + rest +
           "\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("attention of several blocks of rows and keys") {
    CHECK(
        check_streamed(
            attention("bfloat16", "[1, 2, 128, 64]", "[1, 2, 192, 64]", "[1, 2, 192, 64]",
                      "%y : bfloat16[1, 2, 128, 64] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v)"),
            {64, 2, 2, 1, true, 1, true, 1, true}) == "");
}

TEST_CASE("causal attention skips what is wholly masked; lengths and heads that no tile divides, float16") {
    CHECK(check_streamed(attention("float16", "[3, 1, 150, 40]", "[3, 1, 170, 40]", "[3, 1, 170, 72]",
                                   "%y : float16[3, 1, 150, 72] = call_function aten.scaled_dot_product_attention.default(query=%q, "
                                   "key=%k, value=%v, is_causal=true)"),
                         {64, 1, 3, 2, true, 1}) == "");
}

TEST_CASE("grouped queries, a bias that is broadcast over heads, heads of 128") {
    CHECK(check_streamed(
              "%m : bfloat16[1, 1, 70, 90] = placeholder\n" +
                  attention(
                      "bfloat16", "[1, 4, 70, 128]", "[1, 2, 90, 128]", "[1, 2, 90, 128]",
                      "%y : bfloat16[1, 4, 70, 128] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v, "
                      "attn_mask=%m, enable_gqa=true)"),
              {32, 2, 2, 1, false, 1, false, 1, true}) == "");
}

TEST_CASE("a score function of one's own: soft cap, a sliding window and a softmax that divides before the second product") {
    const std::string rest = R"(%t : bfloat16[2, 64, 150] = call_function aten.permute.default(self=%k, dims=[0, 2, 1])
%s : bfloat16[2, 140, 150] = call_function aten.bmm.default(self=%q, mat2=%t)
%f : float32[2, 140, 150] = call_function aten._to_copy.default(self=%s, dtype=torch.float32)
%c : float32[2, 140, 150] = call_function aten.mul.Tensor(self=%f, other=0.05)
%h : float32[2, 140, 150] = call_function aten.tanh.default(self=%c)
%e : float32[2, 140, 150] = call_function aten.mul.Tensor(self=%h, other=20.0)
%i : int64[140] = call_function aten.arange.default(end=140)
%r : int64[140, 1] = call_function aten.unsqueeze.default(self=%i, dim=1)
%j : int64[150] = call_function aten.arange.default(end=150)
%d : int64[140, 150] = call_function aten.sub.Tensor(self=%r, other=%j)
%a : bool[140, 150] = call_function aten.lt.Scalar(self=%d, other=0)
%b : bool[140, 150] = call_function aten.gt.Scalar(self=%d, other=40)
%o : bool[140, 150] = call_function aten.bitwise_or.Tensor(self=%a, other=%b)
%w : float32[2, 140, 150] = call_function aten.masked_fill.Scalar(self=%e, mask=%o, value=-inf)
%p : float32[2, 140, 150] = call_function aten.softmax.int(self=%w, dim=2)
%l : bfloat16[2, 140, 150] = call_function aten._to_copy.default(self=%p, dtype=torch.bfloat16)
%y : bfloat16[2, 140, 64] = call_function aten.bmm.default(self=%l, mat2=%v))";
    CHECK(check_streamed(attention("bfloat16", "[2, 140, 64]", "[2, 150, 64]", "[2, 150, 64]", rest), {64, 2, 2, 1, true, 1}) == "");
}

TEST_CASE("symbolic lengths, heads interleaved in one tensor") {
    CHECK(check_streamed("%x : bfloat16[2, s0, 384] = placeholder\n"
                         "%h : bfloat16[2, s0, 3, 2, 64] = call_function aten.view.default(self=%x, size=[2, s0, 3, 2, 64])\n"
                         "%t : bfloat16[3, 2, 2, s0, 64] = call_function aten.permute.default(self=%h, dims=[2, 0, 3, 1, 4])\n"
                         "%q : bfloat16[2, 2, s0, 64] = call_function aten.select.int(self=%t, dim=0, index=0)\n"
                         "%k : bfloat16[2, 2, s0, 64] = call_function aten.select.int(self=%t, dim=0, index=1)\n"
                         "%v : bfloat16[2, 2, s0, 64] = call_function aten.select.int(self=%t, dim=0, index=2)\n"
                         "%y : bfloat16[2, 2, s0, 64] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, "
                         "value=%v, is_causal=true)\n"
                         "%output = output(values=[%y])",
                         {64, 2, 2, 8, true, 1}, {{"s0", 201}}) == "");
}

TEST_CASE("a mask that is a triangle of ones, as boolean values") {
    CHECK(
        check_streamed("%o : bool[1, 1, 96, 96] = call_function aten.full.default(size=[1, 1, 96, 96], fill_value=true, dtype=torch.bool)\n"
                       "%m : bool[1, 1, 96, 96] = call_function aten.tril.default(self=%o)\n" +
                           attention("bfloat16", "[1, 2, 96, 32]", "[1, 2, 96, 32]", "[1, 2, 96, 32]",
                                     "%y : bfloat16[1, 2, 96, 32] = call_function aten.scaled_dot_product_attention.default(query=%q, "
                                     "key=%k, value=%v, attn_mask=%m)"),
                       {32, 1, 2, 1, false, 1}) == "");
}

TEST_CASE("persistent blocks: pieces of equal length by turns, of unequal length from a common counter") {
    CHECK(
        check_streamed(
            attention("bfloat16", "[1, 3, 128, 64]", "[1, 3, 96, 64]", "[1, 3, 96, 64]",
                      "%y : bfloat16[1, 3, 128, 64] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v)"),
            {32, 1, 2, 1, true, 1, true}) == "");
    CHECK(check_streamed(attention("bfloat16", "[1, 2, 200, 32]", "[1, 2, 200, 32]", "[1, 2, 200, 32]",
                                   "%y : bfloat16[1, 2, 200, 32] = call_function aten.scaled_dot_product_attention.default(query=%q, "
                                   "key=%k, value=%v, is_causal=true)"),
                         {32, 2, 3, 2, true, 1, true}) == "");
}

TEST_CASE("the copy unit brings what the score function reads: wide rows, masks of bytes, one row for all") {
    for (const std::string mask :
         {"bfloat16[1, 2, 128, 128]", "float32[1, 1, 128, 128]", "bool[2, 1, 128, 128]", "bfloat16[2, 1, 1, 128]", "bool[2, 1, 1, 128]"}) {
        CAPTURE(mask);
        CHECK(check_streamed("%m : " + mask + " = placeholder\n" +
                                 attention("bfloat16", "[2, 2, 128, 32]", "[2, 2, 128, 32]", "[2, 2, 128, 32]",
                                           "%y : bfloat16[2, 2, 128, 32] = call_function "
                                           "aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v, attn_mask=%m)"),
                             {64, 1, 2, 1, true, 1}) == "");
    }
}

TEST_CASE("one query row: heads that share keys are the rows of a tile; blocks share the keys, and a second launch merges") {
    for (const std::string q : {"bfloat16[2, 8, 1, 64]", "bfloat16[2, 2, 1, 64]"}) {
        CAPTURE(q);
        CHECK(check_streamed("%m : bfloat16[2, 1, 1, 200] = placeholder\n" +
                                 attention("bfloat16", q.substr(8), "[2, 2, 200, 64]", "[2, 2, 200, 32]",
                                           "%y : " + q.substr(0, q.size() - 3) +
                                               "32] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v, "
                                               "attn_mask=%m, enable_gqa=true)"),
                             {32, 1, 2, 1, false, 1, false, 3}) == "");
    }
}

TEST_CASE("few query rows and many keys in parts") {
    CHECK(check_streamed(
              attention("float16", "[1, 2, 70, 40]", "[1, 2, 320, 40]", "[1, 2, 320, 72]",
                        "%y : float16[1, 2, 70, 72] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v)"),
              {48, 2, 2, 1, true, 1, false, 4}) == "");
}

TEST_CASE("parts of the keys are merged in a cluster") {
    StreamTile tile{32, 1, 2, 1, false, 1, false, 4};
    tile.cluster = true;
    CHECK(check_streamed(attention("bfloat16", "[1, 8, 1, 64]", "[1, 2, 250, 64]", "[1, 2, 250, 64]",
                                   "%y : bfloat16[1, 8, 1, 64] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, "
                                   "value=%v, enable_gqa=true)"),
                         tile) == "");
    tile = {96, 1, 3, 1, false, 1, false, 2};
    tile.cluster = true;
    CHECK(check_streamed(
              attention("float16", "[1, 2, 70, 40]", "[1, 2, 320, 40]", "[1, 2, 320, 72]",
                        "%y : float16[1, 2, 70, 72] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, value=%v)"),
              tile) == "");
}
