// Operators that cannot be compiled are refused by name, all at once, with what to do.
#include <doctest/doctest.h>

#include "lowering/decompose/decompose.h"
#include "tests/support/program_text.h"
#include "tests/support/refusal.h"

using namespace tilewright;

namespace {

std::string message_of(const std::string &lines) {
    Program program = tests::program_from(lines);
    return tests::refusal_of([&] { decompose(program); });
}

}  // namespace

TEST_CASE("unknown operators are counted, and name what can add them") {
    CHECK(message_of("%x : float32[2] = placeholder\n%a : float32[2] = call_function mylib.twist.default(x=%x)\n"
                     "%b : float32[2] = call_function mylib.bend.default(x=%x)\n%c : float32[2] = call_function mylib.twist.default(x=%x)\n"
                     "%output = output(values=[%a, %b, %c])") ==
          "the program uses operators that cannot be compiled: mylib.bend.default (1 time, first 'b'), mylib.twist.default (2 times, first "
          "'a'); "
          "register_decomposition() or register_translation() can add the ones that are not known");
}

TEST_CASE("operators that read what an unknown one makes are listed with it") {
    const std::string text = message_of(
        "%x : float32[2] = placeholder\n%a : float32[2] = call_function mylib.twist.default(x=%x)\n"
        "%b : float32[2] = call_function aten.relu.default(self=%a)\n"
        "%c : float32[2] = call_function mylib.bend.default(x=%b)\n%output = output(values=[%c])");
    CHECK(text.find("mylib.bend.default (1 time, first 'c'), mylib.twist.default (1 time, first 'a')") != std::string::npos);
}

TEST_CASE("random operators and sizes that depend on data say why") {
    const std::string text = message_of(
        "%x : float32[2] = placeholder\n%a : float32[2] = call_function aten.rand_like.default(self=%x)\n"
        "%b : float32[2] = call_function aten.masked_scatter.default(self=%x, mask=%x, source=%x)\n"
        "%output = output(values=[%a, %b])");
    CHECK(text.find("aten.rand_like.default (1 time, first 'a': it draws random numbers") != std::string::npos);
    CHECK(text.find("aten.masked_scatter.default (1 time, first 'b': its result has a size or a place that depends on data") !=
          std::string::npos);
    CHECK(text.find("register_decomposition") == std::string::npos);
}

TEST_CASE("dropout in training") {
    CHECK(
        message_of("%x : float32[2] = placeholder\n%y : float32[2] = call_function aten.dropout.default(input=%x, p=0.5, train=true)\n"
                   "%output = output(values=[%y])") ==
        "node 'y' (aten.dropout.default): dropout in training draws random numbers, which is not supported; export the model in eval mode");
}

TEST_CASE("an index by a mask") {
    CHECK(message_of("%x : float32[2] = placeholder\n%m : bool[2] = placeholder\n"
                     "%y : float32[2] = call_function aten.index.Tensor(self=%x, indices=[%m])\n%output = output(values=[%y])") ==
          "node 'y' (aten.index.Tensor): its result has as many elements as the mask has true ones, a size that depends on data; use "
          "torch.where or "
          "masked_fill, which keep the shape");
}

TEST_CASE("a wrong argument names node, operator and argument") {
    CHECK(message_of("%x : float32[2] = placeholder\n%y : float32[2] = call_function aten.softmax.int(self=%x, dim=3)\n%output = "
                     "output(values=[%y])") == "node 'y' (aten.softmax.int): dim 3 is out of range for 1 dimensions");
    CHECK(message_of("%x : float32[2] = placeholder\n%y : float32[2] = call_function aten.relu.default()\n%output = output(values=[%y])") ==
          "node 'y' (aten.relu.default): argument 'self' is missing");
    CHECK(message_of("%x : float32[0, 3] = placeholder\n%y : float32[3] = call_function aten.amax.default(self=%x, dim=[0])\n"
                     "%output = output(values=[%y])") ==
          "node 'y' (aten.amax.default): amax over a dimension of shape [0, 3] that has no elements has no value");
}
