// Which stages share a kernel, and the reasons that are given.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lowering/fusion/shape.h"
#include "tests/support/partitions.h"

using namespace tilewright;
using tests::decision;
using tests::partition_of;
using tests::stages_of;

TEST_CASE("softmax is one kernel over rows") {
    const Partition p =
        partition_of("%x : float32[8, 64] = placeholder\n" + tests::softmax_lines("x", "y", 8, 64) + "%output = output(values=[%y])\n");
    CHECK(stages_of(p) == "amax sub exp sum div");
    const KernelShapeInfo shape = kernel_shape(p.kernels[0].algorithm);
    CHECK(shape.shape == KernelShape::rows);
    CHECK(shape.anchor == "div");
    CHECK(shape.heavy == "sum");
    CHECK(shape.is_reduced == std::vector<bool>{false, true});
    CHECK(shape.role("amax").axes == std::vector<int>{0});
    CHECK(shape.role("amax").reduction_axes == std::vector<int>{1});
    CHECK(shape.role("sub").is_inlined);
    CHECK_FALSE(shape.role("exp").is_inlined);  // two stages read it, and it is dear
}

TEST_CASE("layer norm takes in its scale, shift and the residual before it") {
    const Partition p = partition_of(R"(%x : float32[2, 8, 64] = placeholder
%r : float32[2, 8, 64] = placeholder
%w : float32[64] = placeholder
%h : float32[2, 8, 64] = call_function prims.add(a=%x, b=%r)
%vm : (float32[2, 8], float32[2, 8]) = call_function prims.var_mean(a=%h, dims=[2], correction=0.0)
%v : float32[2, 8] = call_function getitem(tuple=%vm, index=0)
%m : float32[2, 8] = call_function getitem(tuple=%vm, index=1)
%rs : float32[2, 8] = call_function prims.rsqrt(a=%v)
%mb : float32[2, 8, 64] = call_function prims.broadcast_in_dim(a=%m, size=[2, 8, 64], dims=[0, 1])
%rb : float32[2, 8, 64] = call_function prims.broadcast_in_dim(a=%rs, size=[2, 8, 64], dims=[0, 1])
%wb : float32[2, 8, 64] = call_function prims.broadcast_in_dim(a=%w, size=[2, 8, 64], dims=[2])
%c : float32[2, 8, 64] = call_function prims.sub(a=%h, b=%mb)
%n : float32[2, 8, 64] = call_function prims.mul(a=%c, b=%rb)
%y : float32[2, 8, 64] = call_function prims.mul(a=%n, b=%wb)
%output = output(values=[%y, %h]))");
    CHECK(p.kernels.size() == 1);
    CHECK(p.calls[0].outputs.size() == 2);
    CHECK(kernel_shape(p.kernels[0].algorithm).shape == KernelShape::rows);
}

TEST_CASE("a product takes its epilogue; a softmax after it stands alone and says why") {
    const Partition p = partition_of(R"(%a : float32[32, 16] = placeholder
%b : float32[16, 64] = placeholder
%bias : float32[64] = placeholder
%d : float32[32, 64] = call_function tw.dot(a=%a, b=%b, out_dtype=torch.float32)
%bb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%bias, size=[32, 64], dims=[1])
%s : float32[32, 64] = call_function prims.add(a=%d, b=%bb)
)" + tests::softmax_lines("s", "y", 32, 64) +
                                     "%output = output(values=[%y])\n");
    CHECK(stages_of(p) == "dot add | amax sub exp sum div");
    CHECK(decision(p, "d", "s").fused);
    CHECK(decision(p, "d", "s").reason == "epilogue of the product");
    CHECK(decision(p, "s", "y_m").reason == "the result of a product is stored before a reduction reads it");
}

TEST_CASE("a dear operand is stored, a cheap one is computed where the product reads it") {
    const std::string lines = R"(%a : float32[32, 16] = placeholder
%b : float32[16, 64] = placeholder
%f : float32[32, 16] = call_function prims.{}(a=%a)
%d : float32[32, 64] = call_function tw.dot(a=%f, b=%b, out_dtype=torch.float32)
%output = output(values=[%d]))";
    CHECK(stages_of(partition_of(fmt::format(fmt::runtime(lines), "neg"))) == "neg dot");
    const Partition apart = partition_of(fmt::format(fmt::runtime(lines), "exp"));
    CHECK(stages_of(apart) == "exp | dot");
    CHECK(decision(apart, "f", "d").reason == "the product would compute 8 operations an element again for each tile");
    FusionOptions max;
    max.mode = FusionMode::max;
    CHECK(stages_of(partition_of(fmt::format(fmt::runtime(lines), "exp"), max)) == "exp dot");
    FusionOptions none;
    none.mode = FusionMode::none;
    CHECK(stages_of(partition_of(fmt::format(fmt::runtime(lines), "neg"), none)) == "neg | dot");
}

TEST_CASE("a stage between two kernels that must run in turn is not taken by both") {
    // y reads the row sums of e and e itself from before a product: a circle if all were one kernel.
    const Partition p = partition_of(R"(%x : float32[64, 64] = placeholder
%e : float32[64, 64] = call_function prims.exp(a=%x)
%d : float32[64, 64] = call_function tw.dot(a=%e, b=%x, out_dtype=torch.float32)
%y : float32[64, 64] = call_function prims.add(a=%d, b=%e)
%output = output(values=[%y]))");
    CHECK(stages_of(p) == "exp | dot add");
}

TEST_CASE("equal layers share one kernel") {
    std::string lines = "%g0 : float32[8, 8] = placeholder\n";
    for (int layer = 0; layer < 3; ++layer) {
        lines += tests::softmax_lines(fmt::format("g{}", layer), fmt::format("y{}", layer), 8, 8);
        lines += fmt::format("%g{1} : float32[8, 8] = call_function tw.dot(a=%y{0}, b=%g0, out_dtype=torch.float32)\n", layer, layer + 1);
    }
    lines += "%output = output(values=[%g3])\n";
    const Partition p = partition_of(lines);
    CHECK(p.kernels.size() == 2);
    CHECK(p.calls.size() == 6);
    CHECK(p.calls[2].place == "sum#1");
}

TEST_CASE("thirty stages that read themselves twice stay thirty stages") {
    std::string lines = "%x0 : float32[16] = placeholder\n";
    for (int i = 0; i < 30; ++i) {
        lines += fmt::format("%x{0} : float32[16] = call_function prims.{2}(a=%x{1}, b=%x{1})\n", i + 1, i, i % 2 ? "mul" : "add");
    }
    const Partition p = partition_of(lines + "%output = output(values=[%x30])\n");
    REQUIRE(p.kernels.size() == 1);
    CHECK(p.kernels[0].algorithm.stages.size() == 30);
}

TEST_CASE("thirty doublings by concatenation do not multiply the reads") {
    std::string lines = "%x0 : float32[2, 1] = placeholder\n";
    int size = 1;
    for (int i = 0; i < 12; ++i) {
        lines += fmt::format("%f{0} : float32[2, {1}] = call_function prims.flip(a=%x{0}, dims=[1])\n", i, size);
        lines += fmt::format("%x{0} : float32[2, {2}] = call_function prims.cat(tensors=[%x{1}, %f{1}], dim=1)\n", i + 1, i, 2 * size);
        size *= 2;
    }
    const Partition p = partition_of(lines + "%output = output(values=[%x12])\n");
    for (const Kernel &kernel : p.kernels) {
        CHECK(kernel.algorithm.stages.size() < 30);
    }
}

TEST_CASE("attention is one streaming kernel where that is allowed") {
    const std::string lines =
        R"(%q : float32[32, 16] = placeholder
%k : float32[64, 16] = placeholder
%v : float32[64, 16] = placeholder
%kt : float32[16, 64] = call_function prims.permute(a=%k, dims=[1, 0])
%s : float32[32, 64] = call_function tw.dot(a=%q, b=%kt, out_dtype=torch.float32)
)" + tests::softmax_lines("s", "p", 32, 64) +
        "%o : float32[32, 16] = call_function tw.dot(a=%p, b=%v, out_dtype=torch.float32)\n%output = output(values=[%o])\n";
    CHECK(stages_of(partition_of(lines)) == "dot | amax sub exp sum div | dot");
    FusionOptions options;
    options.streaming = true;
    const Partition p = partition_of(lines, options);
    CHECK(stages_of(p) == "dot amax sub exp sum div dot_1");
    CHECK(kernel_shape(p.kernels[0].algorithm).shape == KernelShape::streaming);
    // Scores that are returned as well cannot stay inside.
    const std::string returned = lines.substr(0, lines.rfind("%output")) + "%output = output(values=[%o, %s])\n";
    CHECK(stages_of(partition_of(returned, options)) == "dot | amax sub exp sum div | dot");
}

TEST_CASE("a gather along a row joins the row's kernel") {
    // log_softmax, then the element that a target names: the row is never stored.
    const Partition p =
        partition_of("%x : float32[32, 64] = placeholder\n%t : int64[32, 1] = placeholder\n" + tests::softmax_lines("x", "y", 32, 64) +
                     "%g : float32[32, 1] = call_function tw.gather(a=%y, dim=1, index=%t)\n%output = output(values=[%g])\n");
    CHECK(stages_of(p) == "amax sub exp sum div gather");
    CHECK(p.intermediates.empty());
}

TEST_CASE("what follows a normalisation of groups runs over the groups, its weights cast and all") {
    const Partition p = partition_of(R"(%x : float32[2, 16, 5] = placeholder
%w : bfloat16[16] = placeholder
%g : float32[2, 4, 20] = call_function prims.reshape(a=%x, size=[2, 4, 20])
%s : float32[2, 4] = call_function prims.sum(a=%g, dims=[2])
%sb : float32[2, 4, 20] = call_function prims.broadcast_in_dim(a=%s, size=[2, 4, 20], dims=[0, 1])
%n : float32[2, 4, 20] = call_function prims.sub(a=%g, b=%sb)
%r : float32[2, 16, 5] = call_function prims.reshape(a=%n, size=[2, 16, 5])
%wf : float32[16] = call_function prims.convert_element_type(a=%w, dtype=torch.float32, explicit=false)
%wb : float32[2, 16, 5] = call_function prims.broadcast_in_dim(a=%wf, size=[2, 16, 5], dims=[1])
%y : float32[2, 16, 5] = call_function prims.mul(a=%r, b=%wb)
%output = output(values=[%y]))");
    CHECK(stages_of(p) == "sum sub convert mul");
    CHECK(p.kernels[0].algorithm.inputs[0].meta.to_string() == "float32[2, 4, 20]");
    CHECK(p.kernels[0].algorithm.outputs[0].meta.to_string() == "float32[2, 4, 20]");
}

TEST_CASE("a value that only a later row needs is not stored by the product before it") {
    const Partition p = partition_of(R"(%a : float32[32, 16] = placeholder
%b : float32[16, 64] = placeholder
%h : float32[32, 64] = call_function tw.dot(a=%a, b=%b, out_dtype=torch.float32)
%q : float32[32, 64] = call_function prims.mul(a=%h, b=%h)
%s : float32[32] = call_function prims.sum(a=%q, dims=[1])
%sb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%s, size=[32, 64], dims=[0])
%y : float32[32, 64] = call_function prims.div(a=%h, b=%sb)
%output = output(values=[%y]))");
    CHECK(stages_of(p) == "dot | mul sum div");
}

TEST_CASE("attention that divides at the end streams too, with the division and what follows") {
    const std::string lines = R"(%q : float32[32, 16] = placeholder
%k : float32[16, 64] = placeholder
%v : float32[64, 16] = placeholder
%s : float32[32, 64] = call_function tw.dot(a=%q, b=%k, out_dtype=torch.float32)
%m : float32[32] = call_function prims.amax(a=%s, dims=[1])
%mb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%m, size=[32, 64], dims=[0])
%c : float32[32, 64] = call_function prims.sub(a=%s, b=%mb)
%e : float32[32, 64] = call_function prims.exp(a=%c)
%t : float32[32] = call_function prims.sum(a=%e, dims=[1])
%o : float32[32, 16] = call_function tw.dot(a=%e, b=%v, out_dtype=torch.float32)
%tb : float32[32, 16] = call_function prims.broadcast_in_dim(a=%t, size=[32, 16], dims=[0])
%d : float32[32, 16] = call_function prims.div(a=%o, b=%tb)
%r : bfloat16[32, 16] = call_function prims.convert_element_type(a=%d, dtype=torch.bfloat16, explicit=false)
%output = output(values=[%r]))";
    FusionOptions options;
    options.streaming = true;
    CHECK(stages_of(partition_of(lines, options)) == "dot amax sub exp dot_1 sum div convert");
}

TEST_CASE("products that share an operand become one kernel where that is allowed") {
    const std::string lines = R"(%x : float32[32, 16] = placeholder
%a : float32[16, 64] = placeholder
%b : float32[16, 64] = placeholder
%g : float32[32, 64] = call_function tw.dot(a=%x, b=%a, out_dtype=torch.float32)
%s : float32[32, 64] = call_function prims.tanh(a=%g)
%u : float32[32, 64] = call_function tw.dot(a=%x, b=%b, out_dtype=torch.float32)
%y : float32[32, 64] = call_function prims.mul(a=%s, b=%u)
%output = output(values=[%y]))";
    CHECK(stages_of(partition_of(lines)) == "dot | dot tanh mul");
    FusionOptions options;
    options.gating = true;
    CHECK(stages_of(partition_of(lines, options)) == "dot tanh dot_1 mul");
}

TEST_CASE("column sums share the rows' kernel where that is allowed") {
    const std::string lines = R"(%x : float32[32, 1024] = placeholder
%s : float32[32] = call_function prims.sum(a=%x, dims=[1])
%sb : float32[32, 1024] = call_function prims.broadcast_in_dim(a=%s, size=[32, 1024], dims=[0])
%y : float32[32, 1024] = call_function prims.div(a=%x, b=%sb)
%c : float32[1024] = call_function prims.sum(a=%y, dims=[0])
%d : float32[1024] = call_function prims.neg(a=%c)
%output = output(values=[%y, %d]))";
    CHECK(stages_of(partition_of(lines)) == "sum div | sum neg");
    FusionOptions options;
    options.mixed = true;
    const Partition p = partition_of(lines, options);
    CHECK(stages_of(p) == "sum div sum_1 neg");
    CHECK(kernel_shape(p.kernels[0].algorithm).shape == KernelShape::mixed);
}

TEST_CASE("kernels are named after the program's operators") {
    // As decomposition leaves them: a node's stages carry its name and their own operator's.
    const Partition p = partition_of(R"(%x : float32[32, 16] = placeholder
%w : float32[16, 64] = placeholder
%b : float32[64] = placeholder
%linear_3_dot : float32[32, 64] = call_function tw.dot(a=%x, b=%w, out_dtype=torch.float32)
%bb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%b, size=[32, 64], dims=[1])
%linear_3 : float32[32, 64] = call_function prims.add(a=%linear_3_dot, b=%bb)
%gelu_erf : float32[32, 64] = call_function prims.erf(a=%linear_3)
%gelu : float32[32, 64] = call_function prims.mul(a=%linear_3, b=%gelu_erf)
%softmax_1_amax : float32[32] = call_function prims.amax(a=%gelu, dims=[1])
%mb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%softmax_1_amax, size=[32, 64], dims=[0])
%softmax_1 : float32[32, 64] = call_function prims.sub(a=%gelu, b=%mb)
%output = output(values=[%softmax_1]))");
    REQUIRE(p.kernels.size() == 2);
    CHECK(p.kernels[0].name == "linear_gelu");
    CHECK(p.kernels[1].name == "softmax");
}
