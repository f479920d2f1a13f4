#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {
void refused(const char *lines, const char *cause) {
    Program program = tests::program_from(lines);
    CHECK_THROWS_WITH_AS(functionalize(program), doctest::Contains(cause), UserError);
}
}  // namespace

TEST_CASE("writes that no pure graph can express are refused at their node") {
    refused(
        "%x : float32[1, 3] = placeholder\n"
        "%e : float32[2, 3] strides=[0, 1] = call_function aten.expand.default(self=%x, size=[2, 3])\n"
        "%m : float32[2, 3] strides=[0, 1] = call_function aten.mul_.Tensor(self=%e, other=2.0)\n"
        "%output = output(values=[%m])",
        "node e: aten.expand.default: writing in place to a view whose elements overlap");
    refused(
        "%x : float32[3] = placeholder\n"
        "%r : float32[6] = call_function aten.resize_.default(self=%x, size=[6])\n"
        "%output = output(values=[%r])",
        "node r: aten.resize_.default cannot be made pure");
    refused(
        "%x : float32[3] = placeholder\n%y : float32[3] = placeholder\n"
        "%r : float32[3] = call_function aten.add.out(self=%x, other=%y, out=%y)\n"
        "%output = output(values=[%r])",
        "node r: aten.add.out cannot be made pure");
    refused(
        "%x : float32[3, 2] = placeholder\n"
        "%r : float32[2, 3] strides=[1, 2] = call_function aten.t_.default(self=%x)\n"
        "%output = output(values=[%r])",
        "changes the shape of the input x in place");
}

TEST_CASE("a tied weight is not written in place") {
    Program program = tests::program_from(
        "%w : float32[3] = placeholder\n%v : float32[3] = placeholder\n"
        "%r : float32[3] = call_function aten.mul_.Tensor(self=%w, other=2.0)\n"
        "%output = output(values=[%r, %v])");
    const HostTensor value = HostTensor::zeros(DType::float32, {3});
    tests::bind_weight(program, "w", InputKind::buffer, value);
    tests::bind_weight(program, "v", InputKind::buffer, value);
    CHECK_THROWS_WITH_AS(functionalize(program), doctest::Contains("w is written in place but shares its memory with v"), UserError);
}
