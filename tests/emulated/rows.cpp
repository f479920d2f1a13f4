// Reductions along rows, with what stands before and after them, as CUDA on the host emulation against the CPU target.
#include <doctest/doctest.h>

#include "dsl/schedule/builder.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

TEST_CASE("softmax holds its row") {
    CHECK(check_emulated("%x : bfloat16[5, 1024] = placeholder\n"
                         "%y : bfloat16[5, 1024] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("softmax of an odd length and of a symbolic one") {
    CHECK(check_emulated("%x : float32[3, 77] = placeholder\n"
                         "%y : float32[3, 77] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : float32[3, s0] = placeholder\n"
                         "%y : float32[3, s0] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])",
                         {{"s0", 301}}) == "");
}

TEST_CASE("rows that are stored, of which another row reads one element") {
    CHECK(check_emulated("%x : float32[6, 7] = placeholder\n%w : float32[6, 7] = placeholder\n"
                         "%s : float32[6, 7] = call_function aten.log_softmax.int(self=%x, dim=1)\n"
                         "%e : float32[6, 1] strides=[7, 1] offset=5 = call_function aten.slice.Tensor(self=%s, dim=1, start=5, end=6)\n"
                         "%l : float32[6, 7] = call_function aten.log_softmax.int(self=%w, dim=1)\n"
                         "%y : float32[6, 7] = call_function aten.add.Tensor(self=%l, other=%e)\n%output = output(values=[%s, %y])") == "");
}

TEST_CASE("softmax of a row too long for registers") {
    CHECK(check_emulated("%x : float32[2, 65540] = placeholder\n"
                         "%y : float32[2, 65540] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("layer norm") {
    CHECK(check_emulated(
              "%x : float32[6, 512] = placeholder\n%w : float32[512] = placeholder\n%b : float32[512] = placeholder\n"
              "%y : float32[6, 512] = call_function aten.layer_norm.default(input=%x, normalized_shape=[512], weight=%w, bias=%b)\n"
              "%output = output(values=[%y])") == "");
}

TEST_CASE("sums, extrema and their indices") {
    for (const char *line : {"%y : float32[4] = call_function aten.sum.dim_IntList(self=%x, dim=[1])\n",
                             "%y : float32[4] = call_function aten.amax.default(self=%x, dim=[1])\n",
                             "%y : int64[4] = call_function aten.argmax.default(self=%x, dim=1)\n",
                             "%y : float32[300] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n",
                             "%y : float32[] = call_function aten.sum.default(self=%x)\n",
                             "%y : float32[4] = call_function aten.logsumexp.default(self=%x, dim=[1])\n"}) {
        CAPTURE(line);
        CHECK(check_emulated((std::string("%x : float32[4, 300] = placeholder\n") + line + "%output = output(values=[%y])").c_str()) == "");
    }
}

TEST_CASE("sums over rows of two tensors share a pass") {
    CHECK(check_emulated(
              "%x : float32[8192] = placeholder\n%w : float32[8192] = placeholder\n"
              "%a : float32[] = call_function aten.sum.default(self=%x)\n%b : float32[] = call_function aten.sum.default(self=%w)\n"
              "%y : float32[] = call_function aten.div.Tensor(self=%a, other=%b)\n%output = output(values=[%y])") == "");
}

TEST_CASE("a statistic of what another statistic normalises") {
    CHECK(check_emulated("%x : float32[3, 512] = placeholder\n%c : float32[3, 512] = placeholder\n"
                         "%n : float32[3, 512] = call_function aten.layer_norm.default(input=%x, normalized_shape=[512])\n"
                         "%m : float32[3, 512] = call_function aten.mul.Tensor(self=%n, other=%c)\n"
                         "%s : float32[3, 512] = call_function aten.softmax.int(self=%m, dim=-1)\n"
                         "%v : float32[3, 1] = call_function aten.std.dim(self=%n, dim=[-1], keepdim=true)\n"
                         "%y : float32[3, 512] = call_function aten.add.Tensor(self=%s, other=%v)\n%output = output(values=[%y])") == "");
}

TEST_CASE("group norm and batch norm: rows of several axes, read by vectors") {
    CHECK(check_emulated("%x : bfloat16[2, 6, 16, 16] = placeholder\n%w : bfloat16[6] = placeholder\n%b : bfloat16[6] = placeholder\n"
                         "%y : bfloat16[2, 6, 16, 16] = call_function aten.group_norm.default(input=%x, num_groups=2, weight=%w, bias=%b)\n"
                         "%output = output(values=[%y])") == "");
    CHECK(check_emulated(
              "%x : float32[4, 5, 24, 8] = placeholder\n"
              "%y : float32[4, 5, 24, 8] = call_function aten.batch_norm.default(input=%x, weight=none, bias=none, running_mean=none, "
              "running_var=none, training=true, momentum=0.1, eps=1e-05, cudnn_enabled=true)\n%output = output(values=[%y])") == "");
}

TEST_CASE("sums of sliced neighbours") {
    CHECK(check_emulated("%x : float32[20, 300] = placeholder\n"
                         "%a : float32[20, 298] = call_function aten.slice.Tensor(self=%x, dim=1, start=0, end=298)\n"
                         "%b : float32[20, 298] = call_function aten.slice.Tensor(self=%x, dim=1, start=1, end=299)\n"
                         "%c : float32[20, 298] = call_function aten.slice.Tensor(self=%x, dim=1, start=2, end=300)\n"
                         "%d : float32[20, 298] = call_function aten.add.Tensor(self=%a, other=%b)\n"
                         "%y : float32[20, 298] = call_function aten.mul.Tensor(self=%d, other=%c)\n%output = output(values=[%y])") == "");
}

TEST_CASE("a row shared by the blocks of a cluster") {
    CHECK(check_emulated("%x : bfloat16[2, 36000] = placeholder\n"
                         "%y : bfloat16[2, 36000] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])",
                         {}, 1e-2) == "");
}

TEST_CASE("blocks of a cluster stay and take row after row: the next one is loaded ahead") {
    const auto check = [](const std::string &value, const std::vector<std::string> &reductions, const std::string &anchor) {
        const auto schedule = [&](const Kernel &) {
            ScheduleBuilder builder;
            builder[anchor]
                .split("d1", "vectors", "lane", 8)
                .vectorize("lane")
                .split("vectors", "part", "own", 256)
                .split("own", "step", "thread", 64);
            builder[anchor].unroll("step").split("d0", "rows", "row_i", 3).gpu_blocks("part", "rows").cluster(2, 1).gpu_threads("thread");
            for (const std::string &reduction : reductions) {
                builder[reduction].compute_at(anchor, "row_i");
            }
            return std::optional(builder.directives);
        };
        return check_scheduled("%x : bfloat16[7, 4096] = placeholder\n" + value + "\n%output = output(values=[%y])", schedule,
                               gpu_facts("sm_90a"), 1e-2);
    };
    CHECK(check("%y : bfloat16[7, 4096] = call_function aten.softmax.int(self=%x, dim=-1)", {"amax", "sum"}, "convert_1") == "");
    CHECK(check("%m : bfloat16[7, 1] = call_function aten.amax.default(self=%x, dim=[1], keepdim=true)\n"
                "%y : bfloat16[7, 4096] = call_function aten.sub.Tensor(self=%x, other=%m)",
                {"amax"}, "convert_3") == "");
}

TEST_CASE("row results and sums over the rows in one pass, and what follows the sums") {
    CHECK(check_emulated("%x : float32[40, 512] = placeholder\n%g : float32[40, 512] = placeholder\n"
                         "%m : float32[40, 1] = call_function aten.mean.dim(self=%x, dim=[1], keepdim=true)\n"
                         "%c : float32[40, 512] = call_function aten.sub.Tensor(self=%x, other=%m)\n"
                         "%y : float32[40, 512] = call_function aten.mul.Tensor(self=%c, other=%g)\n"
                         "%s : float32[512] = call_function aten.sum.dim_IntList(self=%y, dim=[0])\n"
                         "%t : float32[512] = call_function aten.sum.dim_IntList(self=%g, dim=[0])\n"
                         "%a : float32[512] = call_function aten.relu.default(self=%s)\n"
                         "%b : float32[512] = call_function aten.relu.default(self=%t)\n%output = output(values=[%y, %a, %b])") == "");
}

TEST_CASE("long rows that begin at odd places: vectors from where memory is aligned") {
    CHECK(check_emulated("%x : bfloat16[11, 2051] = placeholder\n%w : bfloat16[2051] = placeholder\n"
                         "%y : bfloat16[11, 2051] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%z : bfloat16[11, 2051] = call_function aten.mul.Tensor(self=%y, other=%w)\n%output = output(values=[%z])",
                         {}, 1e-2) == "");
    CHECK(check_emulated("%x : float32[5, 2049] = placeholder\n"
                         "%y : float32[5] = call_function aten.logsumexp.default(self=%x, dim=[1])\n%output = output(values=[%y])") == "");
    // So long that two blocks a multiprocessor hold them packed.
    CHECK(check_emulated("%x : bfloat16[3, 17003] = placeholder\n"
                         "%y : bfloat16[3] = call_function aten.logsumexp.default(self=%x, dim=[1])\n%output = output(values=[%y])",
                         {}, 1e-2) == "");
}

TEST_CASE("short rows: several of a warp, narrow accesses") {
    CHECK(
        check_emulated("%x : bfloat16[5000, 64] = placeholder\n%y : bfloat16[5000, 64] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                       "%output = output(values=[%y])",
                       {}, 1e-2) == "");
    CHECK(check_emulated("%x : float16[70, 271] = placeholder\n%y : float16[70] = call_function aten.amax.default(self=%x, dim=[1])\n"
                         "%output = output(values=[%y])",
                         {}, 1e-3) == "");
}

TEST_CASE("scans of short rows, and what is made of a scan in its pass") {
    CHECK(check_emulated("%x : float32[77, 7] = placeholder\n%y : float32[77, 7] = call_function aten.cumsum.default(self=%x, dim=1)\n"
                         "%output = output(values=[%y])") == "");
    const char *half =
        "%x : float16[3, 4096] = placeholder\n%y : float16[3, 4096] = call_function aten.cumsum.default(self=%x, dim=1)\n%output = "
        "output(values=[%y])";
    CHECK(check_emulated(half, {}, 1e-2) == "");
    const GpuFacts facts = gpu_facts("sm_90a");
    const auto kernels = kernels_from(half);
    CHECK(lower_cuda(kernels[0], default_cuda_schedule(kernels[0], facts), facts).launches.size() == 1);
}

TEST_CASE("rows of a few elements share a warp") {
    for (const char *columns : {"15", "17", "23", "50"}) {
        CAPTURE(columns);
        const std::string shape = std::string("[70, ") + columns + "]";
        CHECK(check_emulated(("%x : float16" + shape + " = placeholder\n%y : float16" + shape +
                              " = call_function aten.softmax.int(self=%x, dim=-1)\n%output = output(values=[%y])")
                                 .c_str(),
                             {}, 1e-3) == "");
    }
}

TEST_CASE("a total over everything is shared out over blocks") {
    const std::string program =
        "%x : float32[512, 2050] = placeholder\n%t : float32[512, 2050] = placeholder\n"
        "%y : float32[] = call_function aten.mse_loss.default(self=%x, target=%t)\n%output = output(values=[%y])";
    CHECK(check_emulated(program.c_str(), {}, 1e-3) == "");
    const auto kernels = kernels_from(program.c_str());
    const GpuFacts facts = gpu_facts("sm_90a");
    CHECK(lower_cuda(kernels[0], default_cuda_schedule(kernels[0], facts), facts).source.find("_partial") != std::string::npos);
}

TEST_CASE("the loss of each row is taken in the row's pass") {
    const std::string program =
        "%x : float32[6, 520] = placeholder\n%t : int64[6] = placeholder\n"
        "%l : float32[6, 520] = call_function aten._log_softmax.default(self=%x, dim=1, half_to_float=false)\n"
        "%n : (float32[], float32[]) = call_function aten.nll_loss_forward.default(self=%l, target=%t, reduction=1, ignore_index=3)\n"
        "%y : float32[] = call_function getitem(tuple=%n, index=0)\n%output = output(values=[%y])";
    CHECK(check_emulated(program.c_str()) == "");
}
