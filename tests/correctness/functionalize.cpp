#include <doctest/doctest.h>

#include "lowering/decompose/decompose.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {
std::string pure(const char *lines) {
    Program program = tests::program_from(lines);
    functionalize(program);
    std::string text = print(program.graph);
    for (const OutputSpec &output : program.outputs) {
        text += output.kind == OutputKind::user_output       ? "user\n"
                : output.kind == OutputKind::buffer_mutation ? "buffer " + output.target + "\n"
                                                             : "input " + output.target + "\n";
    }
    return text;
}
}  // namespace

TEST_CASE("a copy into a view of an input leaves as a further output") {
    CHECK(pure("%dst : float32[2, 2] = placeholder\n"
               "%src : float32[2, 2] = placeholder\n"
               "%d : float32[1, 2] offset=2 = call_function aten.slice.Tensor(self=%dst, dim=0, start=1, end=2)\n"
               "%s : float32[1, 2] = call_function aten.slice.Tensor(self=%src, dim=0, start=0, end=1)\n"
               "%c : float32[1, 2] offset=2 = call_function aten.copy_.default(self=%d, src=%s)\n"
               "%a : float32[2, 2] = call_function aten.add_.Tensor(self=%src, other=1)\n"
               "%output = output(values=[%dst, %src])") ==
          R"(graph {
  %dst : float32[2, 2] = placeholder
  %src : float32[2, 2] = placeholder
  %s : float32[1, 2] = call_function aten.slice.Tensor(self=%src, dim=0, start=0, end=1)
  %clone : float32[1, 2] offset=2 = call_function aten.clone.default(self=%s)
  %slice_scatter : float32[2, 2] = call_function aten.slice_scatter.default(self=%dst, src=%clone, dim=0, start=1, end=2, step=1)
  %add_tensor : float32[2, 2] = call_function aten.add.Tensor(self=%src, other=1)
  %output = output(values=[%slice_scatter, %add_tensor, %slice_scatter, %add_tensor])
}
user
user
input dst
input src
)");
}

TEST_CASE("an alias that was made before a write is read again after it") {
    CHECK(pure("%x : float32[4] = placeholder\n"
               "%y : float32[4] = call_function aten.mul.Tensor(self=%x, other=2.0)\n"
               "%v : float32[2, 2] = call_function aten.view.default(self=%y, size=[2, 2])\n"
               "%before : float32[2, 2] = call_function aten.neg.default(self=%v)\n"
               "%r : float32[4] = call_function aten.relu_.default(self=%y)\n"
               "%after : float32[2, 2] = call_function aten.exp.default(self=%v)\n"
               "%output = output(values=[%before, %after, %r])") ==
          R"(graph {
  %x : float32[4] = placeholder
  %y : float32[4] = call_function aten.mul.Tensor(self=%x, other=2.0)
  %v : float32[2, 2] = call_function aten.view.default(self=%y, size=[2, 2])
  %before : float32[2, 2] = call_function aten.neg.default(self=%v)
  %relu : float32[4] = call_function aten.relu.default(self=%y)
  %view : float32[2, 2] = call_function aten.view.default(self=%relu, size=[2, 2])
  %after : float32[2, 2] = call_function aten.exp.default(self=%view)
  %output = output(values=[%before, %after, %relu])
}
user
user
user
)");
}

TEST_CASE("values that trade places are read before either is written") {
    const std::string text = pure(
        "%x : float32[3] = placeholder\n"
        "%y : float32[3] = placeholder\n"
        "%c : float32[3] = call_function aten.copy_.default(self=%x, src=%y)\n"
        "%a : float32[3] = call_function aten.add_.Tensor(self=%y, other=1)\n"
        "%s : float32[3] = call_function aten.add.Tensor(self=%x, other=%y)\n"
        "%output = output(values=[%s])");
    CHECK(text.find("call_function aten.add.Tensor(self=%y, other=%add_tensor)") != std::string::npos);
}

TEST_CASE("the result of an in-place operator keeps its tensor's element type") {
    const std::string text = pure(
        "%x : float16[3] = placeholder\n"
        "%y : float32[3] = placeholder\n"
        "%a : float16[3] = call_function aten.add_.Tensor(self=%x, other=%y)\n"
        "%output = output(values=[%a])");
    CHECK(text.find("%add_tensor : float32[3] = call_function aten.add.Tensor(self=%x, other=%y)") != std::string::npos);
    CHECK(text.find("%_to_copy : float16[3] = call_function aten._to_copy.default(self=%add_tensor, dtype=torch.float16)") !=
          std::string::npos);
}

TEST_CASE("a write through a chain of views reaches their base") {
    const std::string text = pure(
        "%x : float32[4, 6] = placeholder\n"
        "%t : float32[6, 4] strides=[1, 6] = call_function aten.t.default(self=%x)\n"
        "%s : float32[4] strides=[6] offset=2 = call_function aten.select.int(self=%t, dim=0, index=2)\n"
        "%z : float32[4] strides=[6] offset=2 = call_function aten.zero_.default(self=%s)\n"
        "%output = output(values=[%x])");
    CHECK(text.find("aten.select_scatter.default(self=%permute, src=%full, dim=0, index=2)") != std::string::npos);
    CHECK(text.find("%permute_1 : float32[4, 6] = call_function aten.permute.default(self=%select_scatter, dims=[1, 0])") !=
          std::string::npos);
    CHECK(text.ends_with("user\ninput x\n"));
}

TEST_CASE("dropout in place writes nothing in eval mode") {
    Program program = tests::program_from(
        "%x : float32[4] = placeholder\n"
        "%y : float32[4] = call_function aten.relu.default(self=%x)\n"
        "%d : float32[4] = call_function aten.dropout_.default(self=%y, p=0.5, train=false)\n"
        "%output = output(values=[%d])");
    functionalize(program);
    decompose(program);
    CHECK(print(program.graph).find("dropout") == std::string::npos);
}
