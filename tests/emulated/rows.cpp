// Reductions along rows, with what stands before and after them, as CUDA on the host emulation against the CPU target.
#include <doctest/doctest.h>

#include "tests/support/emulated_kernel.h"

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
                         "%output = output(values=[%y])", {{"s0", 301}}) == "");
}

TEST_CASE("softmax of a row too long for registers") {
    CHECK(check_emulated("%x : float32[2, 65540] = placeholder\n"
                         "%y : float32[2, 65540] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("layer norm") {
    CHECK(check_emulated("%x : float32[6, 512] = placeholder\n%w : float32[512] = placeholder\n%b : float32[512] = placeholder\n"
                         "%y : float32[6, 512] = call_function aten.layer_norm.default(input=%x, normalized_shape=[512], weight=%w, bias=%b)\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("sums, extrema and their indices") {
    for (const char *line : {"%y : float32[4] = call_function aten.sum.dim_IntList(self=%x, dim=[1])\n", "%y : float32[4] = call_function aten.amax.default(self=%x, dim=[1])\n",
                             "%y : int64[4] = call_function aten.argmax.default(self=%x, dim=1)\n", "%y : float32[300] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n",
                             "%y : float32[] = call_function aten.sum.default(self=%x)\n", "%y : float32[4] = call_function aten.logsumexp.default(self=%x, dim=[1])\n"}) {
        CAPTURE(line);
        CHECK(check_emulated((std::string("%x : float32[4, 300] = placeholder\n") + line + "%output = output(values=[%y])").c_str()) == "");
    }
}
