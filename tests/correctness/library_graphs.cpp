// Which kernels are convolutions and attention that cuDNN can compute, and as which graph.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/cuda/cudnn_attention.h"
#include "lowering/cuda/cudnn_convolution.h"
#include "lowering/cuda/engine.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using tilewright::tests::kernels_from;

namespace {

const GpuFacts &hopper = gpu_facts("sm_90a");

std::string convolution_lines(const std::string &how, const std::string &rest, const std::string &out) {
    return "%x : bfloat16[2, 16, 9, 8] = placeholder\n%w : bfloat16[24, 16, 3, 3] = placeholder\n%b : bfloat16[24] = placeholder\n"
           "%c : bfloat16[" +
           out + "] = call_function aten.conv2d.default(input=%x, weight=%w, bias=%b, " + how + ")\n" + rest;
}

}  // namespace

TEST_CASE("a convolution with its bias and a ReLU is one graph") {
    const std::vector<Kernel> kernels = kernels_from(
        convolution_lines("stride=[2, 1], padding=[1, 0], dilation=[1, 2]",
                          "%y : bfloat16[2, 24, 5, 4] = call_function aten.relu.default(self=%c)\n%output = output(values=[%y])",
                          "2, 24, 5, 4")
            .c_str());
    REQUIRE(kernels.size() == 1);
    std::string why;
    const auto step = match_cudnn_convolution(kernels[0], &why);
    REQUIRE_MESSAGE(step, why);
    CHECK(step->padding == std::vector<std::int64_t>{1, 0});
    CHECK(step->strides == std::vector<std::int64_t>{2, 1});
    CHECK(step->dilations == std::vector<std::int64_t>{1, 2});
    REQUIRE(step->tensors.size() == 4);
    CHECK(step->tensors[0].sizes == std::vector<Extent>{2, 16, 9, 8});
    CHECK(step->tensors[1].sizes == std::vector<Extent>{24, 16, 3, 3});
    CHECK(step->tensors[2].sizes == std::vector<Extent>{1, 24, 1, 1});
    CHECK(step->tensors[3].sizes == std::vector<Extent>{2, 24, 5, 4});
    CHECK(step->tensors[3].buffer == 3);
    REQUIRE(step->epilogue.size() == 2);
    CHECK((step->epilogue[0].op == EnginePointwise::Op::add && step->epilogue[0].tensor == 2));
    CHECK(step->epilogue[1].op == EnginePointwise::Op::relu);
    CHECK(computes(EngineLibrary::cudnn, kernels[0], hopper));
    CHECK(!computes(EngineLibrary::cublaslt, kernels[0], hopper));
    CHECK(print(engine_schedule(EngineLibrary::cudnn, kernels[0], 2)).find(".engine(\"cudnn:2\")") != std::string::npos);
}

TEST_CASE("what a graph of a convolution does not say is refused") {
    const auto why_not = [](const std::string &lines) {
        const std::vector<Kernel> kernels = kernels_from(lines.c_str());
        std::string why;
        CHECK(!match_cudnn_convolution(kernels.back(), &why));
        return why;
    };
    CHECK(why_not(convolution_lines("padding=[1, 1]",
                                    "%y : bfloat16[2, 24, 9, 8] = call_function aten.silu.default(self=%c)\n%output = output(values=[%y])",
                                    "2, 24, 9, 8")) == "its epilogue is more than sums, products and ReLUs");
    CHECK(why_not("%x : float32[2, 16, 9, 8] = placeholder\n%w : float32[24, 16, 3, 3] = placeholder\n"
                  "%c : float32[2, 24, 7, 6] = call_function aten.conv2d.default(input=%x, weight=%w)\n%output = output(values=[%c])") ==
          "its operands are not of one half-precision type");
}

TEST_CASE("what cuDNN cannot compute of a 1x1 convolution is said of a convolution") {
    const std::vector<Kernel> kernels = kernels_from(
        "%x : bfloat16[2, 16, 9, 8] = placeholder\n%w : bfloat16[24, 16, 1, 1] = placeholder\n"
        "%y : bfloat16[2, 24, 9, 8] = call_function aten.conv2d.default(input=%x, weight=%w)\n%output = output(values=[%y])");
    std::string why;
    CHECK(!computes(EngineLibrary::cudnn, kernels.back(), hopper, &why));
    CHECK(why == "its windows have a form that cuDNN does not know");
}

TEST_CASE("attention is one graph, with heads that share keys, with the triangle and without") {
    const auto attention = [](const std::string &how) {
        return kernels_from(("%q : bfloat16[2, 8, 64, 64] = placeholder\n%k : bfloat16[2, 2, 96, 64] = placeholder\n%v : bfloat16[2, 2, "
                             "96, 64] = placeholder\n"
                             "%y : bfloat16[2, 8, 64, 64] = call_function aten.scaled_dot_product_attention.default(query=%q, key=%k, "
                             "value=%v, enable_gqa=true" +
                             how + ")\n%output = output(values=[%y])")
                                .c_str());
    };
    for (const bool causal : {false, true}) {
        const std::vector<Kernel> kernels = attention(causal ? ", is_causal=true, scale=0.25" : "");
        REQUIRE(kernels.size() == 1);
        std::string why;
        const auto step = match_cudnn_attention(kernels[0], hopper, &why);
        REQUIRE_MESSAGE(step, why);
        CHECK(step->causal == causal);
        CHECK(step->scale == doctest::Approx(causal ? 0.25 : 0.125));
        REQUIRE(step->tensors.size() == 4);
        CHECK(step->tensors[0].sizes == std::vector<Extent>{2, 8, 64, 64});
        CHECK(step->tensors[1].sizes == std::vector<Extent>{2, 2, 96, 64});
        CHECK(step->tensors[2].strides == std::vector<Extent>{12288, 6144, 64, 1});
        CHECK(step->tensors[3].sizes == std::vector<Extent>{2, 8, 64, 64});
    }
}
