// A value is one value for all its readers; a pair of conversions is dropped only where nobody else could see the difference.
#include <doctest/doctest.h>

#include "tests/support/partitions.h"

using namespace tilewright;
using tests::partition_of;
using tests::stages_of;

namespace {

const std::string rounded = R"(%x : float32[8, 64] = placeholder
%h : float32[8, 64] = call_function prims.exp(a=%x)
%b : bfloat16[8, 64] = call_function prims.convert_element_type(a=%h, dtype=torch.bfloat16, explicit=false)
%f : float32[8, 64] = call_function prims.convert_element_type(a=%b, dtype=torch.float32, explicit=false)
)";

}  // namespace

TEST_CASE("a conversion to bfloat16 and back between two stages is dropped") {
    const std::string lines = rounded + "%y : float32[8, 64] = call_function prims.neg(a=%f)\n%output = output(values=[%y])\n";
    CHECK(stages_of(partition_of(lines)) == "exp convert neg");
    FusionOptions strict;
    strict.strict = true;
    CHECK(stages_of(partition_of(lines, strict)) == "exp convert convert_1 neg");
}

TEST_CASE("not where the value is returned, read twice or compared") {
    CHECK(stages_of(partition_of(rounded + "%y : float32[8, 64] = call_function prims.neg(a=%f)\n%output = output(values=[%y, %b])\n")) ==
          "exp convert convert_1 neg");
    CHECK(stages_of(partition_of(
              rounded + "%y : float32[8, 64] = call_function prims.neg(a=%f)\n%z : float32[8, 64] = call_function prims.abs(a=%f)\n"
                        "%output = output(values=[%y, %z])\n")) == "exp convert convert_1 neg abs");
    CHECK(stages_of(partition_of(rounded + "%y : bool[8, 64] = call_function prims.eq(a=%f, b=%x)\n%output = output(values=[%y])\n")) ==
          "exp convert convert_1 eq");
}

TEST_CASE("not where the program wrote the cast") {
    CHECK(stages_of(partition_of(R"(%x : float32[8, 64] = placeholder
%h : float32[8, 64] = call_function prims.exp(a=%x)
%b : bfloat16[8, 64] = call_function prims.convert_element_type(a=%h, dtype=torch.bfloat16, explicit=true)
%f : float32[8, 64] = call_function prims.convert_element_type(a=%b, dtype=torch.float32, explicit=false)
%y : float32[8, 64] = call_function prims.neg(a=%f)
%output = output(values=[%y]))")) == "exp convert convert_1 neg");
}
