// Broken schedule files: each fault has its line, its column, its cause and a repair.
#include <doctest/doctest.h>

#include "dsl/schedule/schedule.h"
#include "tests/support/refusal.h"

using namespace tilewright;

namespace {

const std::string header = "tilewright schedule 1\nmodel m.pt2  graph 0a\ntarget  cpu \"x86\"\n";
const std::string kernel = header + "kernel k  algorithm 0123456789abcdef\n";

std::string error_of(const std::string &text) {
    return tests::refusal_of([&] { parse_schedule(text, "f.schedule"); });
}

}  // namespace

TEST_CASE("faults of the header") {
    CHECK(error_of("") == "f.schedule:1:1: the file is empty; a schedule file begins with 'tilewright schedule 1'");
    CHECK(error_of("tilewright plan 1\n") ==
          "f.schedule:1:12: expected 'schedule' instead of 'plan'; a schedule file begins with 'tilewright schedule 1'");
    CHECK(error_of("tilewright schedule 2\n") ==
          "f.schedule:1:21: version 2 of the format is unknown; this program reads version 1; use the program that wrote the file, or tune "
          "again");
    CHECK(error_of("tilewright schedule 1\nmodel m.pt2\n") ==
          "f.schedule:2:12: expected 'graph' instead of the end of the line; the second line is: model NAME  graph HASH");
    CHECK(error_of("tilewright schedule 1\nmodel m graph 0\ntarget tpu\n") ==
          "f.schedule:3:8: 'tpu' is no target; the third line is: target cpu|cuda ARCHITECTURE \"DEVICE\"");
    CHECK(error_of("tilewright schedule 1\nmodel m graph 0\n") ==
          "f.schedule:3:1: the file ends where its 'target' line should stand; the third line is: target cpu|cuda ARCHITECTURE \"DEVICE\"");
}

TEST_CASE("faults of an entry") {
    CHECK(error_of(header + "dot.parallel(m)\n") ==
          "f.schedule:4:1: 'dot.parallel(m)' stands outside a kernel's entry; an entry is written: kernel NAME  algorithm HASH, then its "
          "lines, then end");
    CHECK(error_of(header + "kernel k algorithm 12\n") ==
          "f.schedule:4:20: '12' is no hash of an algorithm; a hash has 16 hexadecimal digits in lower case; 'tilewright print --stage "
          "groups' shows them");
    CHECK(error_of(kernel + "  dot.parallel(m)\n") ==
          "f.schedule:6:1: the entry of kernel 'k', begun on line 4, has no end; close it with a line 'end'");
    CHECK(error_of(kernel + "end\nkernel k  algorithm 0123456789abcdef\nend\n") ==
          "f.schedule:6:8: kernel 'k' has an entry on line 4 already; remove one of them");
    CHECK(error_of(kernel + "  cover a\nend\n") == "f.schedule:5:3: 'cover' begins no line of an entry; did you mean covers?");
    CHECK(error_of(kernel + "  covers a \"b\nend\n") == "f.schedule:5:12: a quoted text has no end; close it with \" on the same line");
}

TEST_CASE("faults of a directive's text") {
    CHECK(error_of(kernel + "  dot.paralel(m)\nend\n") ==
          "f.schedule:5:7: there is no directive 'paralel'; did you mean parallel? 'tilewright help directives' lists them all");
    CHECK(error_of(kernel + "  dot.split(m, o, i, 8\nend\n") ==
          "f.schedule:5:23: expected ',' or ')' instead of the end of the line; write split(axis, outer, inner, factor)");
    CHECK(error_of(kernel + "  dot.compute_at(gelu, m.vectorize(k)\nend\n") ==
          "f.schedule:5:25: expected ',' or ')' instead of '.'; write compute_at(stage, axis)");
    CHECK(error_of(kernel + "  dot.split(m, o, i, 8q)\nend\n") ==
          "f.schedule:5:22: '8q' is no 64-bit integer; write a plain decimal number");
    CHECK(error_of(kernel + "  dot.split(m, o, i, 99999999999999999999)\nend\n") ==
          "f.schedule:5:22: '99999999999999999999' is no 64-bit integer; write a plain decimal number");
    CHECK(error_of(kernel + "  dot.parallel(m) gelu.parallel(m)\nend\n") ==
          "f.schedule:5:19: unexpected 'gelu'; directives of one stage are joined by '.'; another stage begins a new line");
    CHECK(error_of(kernel + "  dot.parallel(m)!\nend\n") ==
          "f.schedule:5:18: unexpected character '!'; a directive is written STAGE.NAME(ARGUMENTS); remove the character");
    CHECK(error_of(kernel + "  x.in(.parallel(m)\nend\n") ==
          "f.schedule:5:8: expected the stage that reads the copy instead of '.'; a staged copy is written TENSOR.in(STAGE)");
}

TEST_CASE("faults of variants") {
    CHECK(error_of(kernel + "  else\nend\n") == "f.schedule:5:3: 'else' without a 'when' before it; begin with: when STAGE.AXIS <= NUMBER");
    CHECK(error_of(kernel + "  when a.b < 1\n  else\n  when a.b < 2\nend\n") ==
          "f.schedule:7:3: a variant stands after 'else'; 'else' comes last; put the directives before it under a 'when'");
    CHECK(error_of(kernel + "  a.parallel(b)\n  when a.b < 2\nend\n") ==
          "f.schedule:6:3: a variant stands after directives that hold always; 'else' comes last; put the directives before it under a "
          "'when'");
    CHECK(error_of(kernel + "  when a.b != 2\nend\n") ==
          "f.schedule:5:12: unexpected character '!'; a directive is written STAGE.NAME(ARGUMENTS); remove the character");
    CHECK(error_of(kernel + "  when a.b <= many\nend\n") ==
          "f.schedule:5:15: expected a number instead of 'many'; a condition is written: when STAGE.AXIS <= NUMBER and …");
}
