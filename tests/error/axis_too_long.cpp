// A dimension beyond 32 bits is refused by name.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"

using namespace tilewright;

TEST_CASE("an axis of more than 2^31 - 1 elements") {
    Program program = tests::program_from(
        "%x : uint8[2, 3000000000] = placeholder\n"
        "%y : uint8[2, 3000000000] = call_function prims.neg(a=%x)\n"
        "%output = output(values=[%y])");
    CHECK_THROWS_WITH_AS(
        translate(program),
        "node x: dimension 1 of its shape [2, 3000000000] is longer than 2147483647, the longest that an axis may be; split it into "
        "two dimensions",
        UserError);
}
