// What single operators become: promotion, rounding, casts, trivial views.
#include <doctest/doctest.h>

#include "lowering/decompose/decompose.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {

/// The instructions between the placeholders and the output, one a line.
std::string core_of(const std::string &lines) {
    Program program = tests::program_from(lines);
    decompose(program);
    verify(program.graph);
    std::string text;
    for (const auto &node : program.graph.nodes()) {
        if (node->opcode == Opcode::call_function) {
            text += print(*node) + "\n";
        }
    }
    return text;
}

}  // namespace

TEST_CASE("a number takes the tensor's type, and int32 with float32 becomes float32") {
    CHECK(core_of("%x : int32[3] = placeholder\n%y : float32[1] = placeholder\n"
                  "%z : float32[3] = call_function aten.add.Tensor(self=%x, other=%y)\n%output = output(values=[%z])") ==
          "%z_convert_element_type : float32[3] = call_function prims.convert_element_type(a=%x, dtype=torch.float32, explicit=false)\n"
          "%z_broadcast_in_dim : float32[3] = call_function prims.broadcast_in_dim(a=%y, size=[3], dims=[0])\n"
          "%z : float32[3] = call_function prims.add(a=%z_convert_element_type, b=%z_broadcast_in_dim)\n");
    CHECK(core_of("%x : uint8[3] = placeholder\n%z : uint8[3] = call_function aten.mul.Tensor(self=%x, other=2)\n"
                  "%output = output(values=[%z])") ==
          "%z_full : uint8[3] = call_function prims.full(size=[3], value=2, dtype=torch.uint8)\n"
          "%z : uint8[3] = call_function prims.mul(a=%x, b=%z_full)\n");
}

TEST_CASE("bfloat16 is computed in float32 and rounded at each operator") {
    CHECK(core_of("%x : bfloat16[3] = placeholder\n%y : bfloat16[3] = call_function aten.exp.default(self=%x)\n"
                  "%z : bfloat16[3] = call_function aten.neg.default(self=%y)\n%output = output(values=[%z])") ==
          "%y_convert_element_type : float32[3] = call_function prims.convert_element_type(a=%x, dtype=torch.float32, explicit=false)\n"
          "%y_exp : float32[3] = call_function prims.exp(a=%y_convert_element_type)\n"
          "%y : bfloat16[3] = call_function prims.convert_element_type(a=%y_exp, dtype=torch.bfloat16, explicit=false)\n"
          "%z_convert_element_type : float32[3] = call_function prims.convert_element_type(a=%y, dtype=torch.float32, explicit=false)\n"
          "%z_neg : float32[3] = call_function prims.neg(a=%z_convert_element_type)\n"
          "%z : bfloat16[3] = call_function prims.convert_element_type(a=%z_neg, dtype=torch.bfloat16, explicit=false)\n");
}

TEST_CASE("a cast that the program wrote is explicit, and one to the same type is none") {
    CHECK(core_of("%x : float32[3] = placeholder\n%y : float32[3] = call_function aten.to.dtype(self=%x, dtype=torch.float32)\n"
                  "%z : bfloat16[3] = call_function aten.to.dtype(self=%y, dtype=torch.bfloat16)\n%output = output(values=[%z])") ==
          "%z : bfloat16[3] = call_function prims.convert_element_type(a=%x, dtype=torch.bfloat16, explicit=true)\n");
}

TEST_CASE("views that change nothing leave nothing, and a chain of reshapes is one") {
    CHECK(core_of("%x : float32[2, 3] = placeholder\n%a : float32[6] = call_function aten.view.default(self=%x, size=[6])\n"
                  "%b : float32[3, 2] = call_function aten.view.default(self=%a, size=[3, -1])\n"
                  "%c : float32[3, 2] = call_function aten.expand.default(self=%b, size=[3, 2])\n"
                  "%d : float32[3, 2] = call_function aten.clone.default(self=%c)\n%output = output(values=[%d])") ==
          "%b : float32[3, 2] = call_function prims.reshape(a=%x, size=[3, 2])\n");
}

TEST_CASE("a zero beta skips its operand, and sums of small integers are int64") {
    const std::string product = core_of(
        "%c : float32[5] = placeholder\n%a : float32[3, 4] = placeholder\n%b : float32[4, 5] = placeholder\n"
        "%z : float32[3, 5] = call_function aten.addmm.default(self=%c, mat1=%a, mat2=%b, beta=0)\n%output = output(values=[%z])");
    CHECK(product == "%z : float32[3, 5] = call_function tw.dot(a=%a, b=%b, out_dtype=torch.float32)\n");
    CHECK(core_of("%x : bool[7] = placeholder\n%z : int64[] = call_function aten.sum.default(self=%x)\n%output = output(values=[%z])") ==
          "%z_convert_element_type : int64[7] = call_function prims.convert_element_type(a=%x, dtype=torch.int64, explicit=false)\n"
          "%z : int64[] = call_function prims.sum(a=%z_convert_element_type, dims=[0])\n");
}

TEST_CASE("symbolic sizes stay symbolic") {
    CHECK(core_of("%x : float32[s0, 4] = placeholder\n%y : float32[4*s0] = call_function aten.view.default(self=%x, size=[-1])\n"
                  "%z : float32[4*s0 - 1] = call_function aten.slice.Tensor(self=%y, dim=0, start=1)\n%output = output(values=[%z])")
              .find("start=1, end=s0*4, step=1") != std::string::npos);
}

TEST_CASE("checks and unread instructions are dropped, even random ones") {
    CHECK(core_of("%x : float32[3] = placeholder\n%r : float32[3] = call_function aten.rand_like.default(self=%x)\n"
                  "%z : float32[3] = call_function aten.relu.default(self=%x)\n%output = output(values=[%z])")
              .find("rand") == std::string::npos);
}
