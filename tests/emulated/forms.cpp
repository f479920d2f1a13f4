// Every form of stage as CUDA on the host emulation, against the CPU target: default schedules, and none at all.
#include <doctest/doctest.h>

#include "tests/support/emulated_kernel.h"

using namespace tilewright::tests;

TEST_CASE("pointwise: two outputs in one pass, broadcasts, odd sizes") {
    CHECK(check_emulated("%x : float32[7, 33] = placeholder\n%b : float32[33] = placeholder\n"
                         "%s : float32[7, 33] = call_function aten.add.Tensor(self=%x, other=%b)\n"
                         "%t : float32[7, 33] = call_function aten.tanh.default(self=%s)\n"
                         "%output = output(values=[%s, %t])") == "");
}

TEST_CASE("a permuted copy in squares of registers") {
    CHECK(check_emulated("%x : bfloat16[2, 4, 6, 32] = placeholder\n"
                         "%p : bfloat16[2, 32, 4, 6] = call_function aten.permute.default(self=%x, dims=[0, 3, 1, 2])\n"
                         "%y : bfloat16[2, 32, 4, 6] = call_function aten.mul.Tensor(self=%p, other=2)\n"
                         "%output = output(values=[%y])") == "");
}

TEST_CASE("scans: along the row, along the column, of pairs") {
    for (const char *line : {"%y : float32[5, 700] = call_function aten.cumsum.default(self=%x, dim=1)\n",
                             "%y : float32[5, 700] = call_function aten.cumsum.default(self=%x, dim=0)\n",
                             "%y : float32[5, 700] = call_function aten.logcumsumexp.default(self=%x, dim=1)\n"}) {
        CAPTURE(line);
        CHECK(check_emulated((std::string("%x : float32[5, 700] = placeholder\n") + line + "%output = output(values=[%y])").c_str(), {},
                             1e-4) == "");
    }
}

TEST_CASE("scans of rows that begin at any phase, with what stands before them") {
    for (const std::string tensor : {"float32[3, 523]", "float32[2, 2311]", "bfloat16[5, 1021]", "int32[3, 1030]"}) {
        CAPTURE(tensor);
        const std::string sums = tensor[0] == 'i' ? "int64" + tensor.substr(5) : tensor;
        CHECK(check_emulated(("%x : " + tensor + " = placeholder\n%d : " + tensor +
                              " = call_function aten.mul.Tensor(self=%x, other=2)\n%y : " + sums +
                              " = call_function aten.cumsum.default(self=%d, dim=-1)\n%output = output(values=[%y])")
                                 .c_str(),
                             {}, tensor[0] == 'b' ? 2e-2 : 1e-4) == "");
    }
}

TEST_CASE("long columns are scanned in parts, several columns beside each other") {
    for (const char *shape : {"[700, 21]", "[2, 1030, 8]", "[4096, 3]"}) {
        CAPTURE(shape);
        const std::string dim = shape[1] == '2' ? "1" : "0", tensor = std::string("float32") + shape;
        CHECK(check_emulated(
                  ("%x : " + tensor + " = placeholder\n%y : " + tensor + " = call_function aten.cumsum.default(self=%x, dim=" + dim +
                   ")\n%z : " + tensor + " = call_function aten.mul.Tensor(self=%y, other=%x)\n%output = output(values=[%y, %z])")
                      .c_str(),
                  {}, 1e-4) == "");
    }
}

TEST_CASE("gathers and scatters") {
    CHECK(check_emulated(
              "%x : float32[6, 9] = placeholder\n%i : int64[4, 9] = placeholder\n"
              "%y : float32[4, 9] = call_function aten.gather.default(self=%x, dim=0, index=%i)\n%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : float32[6, 9] = placeholder\n%i : int64[4, 9] = placeholder\n%s : float32[4, 9] = placeholder\n"
                         "%y : float32[6, 9] = call_function aten.scatter_add.default(self=%x, dim=0, index=%i, src=%s)\n%output = "
                         "output(values=[%y])") == "");
    CHECK(check_emulated(
              "%x : float32[6, 9] = placeholder\n%i : int64[4, 9] = placeholder\n%s : float32[4, 9] = placeholder\n"
              "%y : float32[6, 9] = call_function aten.scatter.src(self=%x, dim=0, index=%i, src=%s)\n%output = output(values=[%y])") ==
          "");
}

TEST_CASE("a product and a convolution with what follows") {
    CHECK(check_emulated("%a : float32[9, 20] = placeholder\n%b : float32[20, 13] = placeholder\n%c : float32[13] = placeholder\n"
                         "%d : float32[9, 13] = call_function aten.addmm.default(self=%c, mat1=%a, mat2=%b)\n"
                         "%y : float32[9, 13] = call_function aten.relu.default(self=%d)\n%output = output(values=[%y])") == "");
}

TEST_CASE("columns beside rows in one pass, and columns alone") {
    CHECK(check_emulated("%x : float32[40, 64] = placeholder\n"
                         "%m : float32[40, 1] = call_function aten.mean.dim(self=%x, dim=[1], keepdim=true)\n"
                         "%c : float32[40, 64] = call_function aten.sub.Tensor(self=%x, other=%m)\n"
                         "%s : float32[64] = call_function aten.sum.dim_IntList(self=%c, dim=[0])\n"
                         "%output = output(values=[%c, %s])") == "");
    CHECK(check_emulated("%x : bfloat16[3000, 40] = placeholder\n"
                         "%s : bfloat16[40] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n%output = output(values=[%s])") == "");
    CHECK(check_emulated("%x : bfloat16[300, 64] = placeholder\n"
                         "%m : bfloat16[64] = call_function aten.amax.default(self=%x, dim=[0])\n%output = output(values=[%m])") == "");
}

TEST_CASE("columns that a block holds between their reductions and what is made of them") {
    CHECK(check_emulated("%x : float32[300, 21] = placeholder\n%y : float32[300, 21] = call_function aten._softmax.default(self=%x, dim=0, "
                         "half_to_float=false)\n"
                         "%output = output(values=[%y])") == "");
    CHECK(check_emulated("%x : bfloat16[3, 70, 5, 6] = placeholder\n%y : bfloat16[3, 70, 5, 6] = call_function "
                         "aten._log_softmax.default(self=%x, dim=1, half_to_float=false)\n"
                         "%z : bfloat16[3, 70, 5, 6] = call_function aten.add.Tensor(self=%y, other=%x)\n%output = output(values=[%y, %z])",
                         {}, 1e-2) == "");
}

TEST_CASE("empty tensors launch nothing and leave identities") {
    CHECK(check_emulated("%x : float32[3, 0] = placeholder\n"
                         "%s : float32[3] = call_function aten.sum.dim_IntList(self=%x, dim=[1])\n%output = output(values=[%s])") == "");
}
