// A program with operators that nothing translates names all of them at once.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"

using namespace tilewright;

TEST_CASE("every operator without a translation is listed") {
    Program program = tests::program_from(
        "%x : float32[2] = placeholder\n"
        "%y : float32[2] = call_function mylib.twist.default(x=%x)\n"
        "%z : float32[2] = call_function mylib.bend.default(x=%y)\n"
        "%output = output(values=[%z])");
    CHECK_THROWS_WITH_AS(
        translate(program),
        "test.pt2: no translation of mylib.bend.default, mylib.twist.default; register one with register_translation(), or a "
        "decomposition with register_decomposition()",
        UserError);
}

TEST_CASE("an argument that a translation needs is missing") {
    Program program = tests::program_from(
        "%x : float32[2] = placeholder\n"
        "%y : float32[] = call_function prims.sum(a=%x)\n"
        "%output = output(values=[%y])");
    CHECK_THROWS_WITH_AS(translate(program),
                         "node y (prims.sum) has no argument dims; see the operator's row in lowering/decompose/CORE.md", UserError);
}
