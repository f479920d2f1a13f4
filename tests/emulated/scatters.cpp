// Scatters on the host emulation: atomic sums of every type, and the last of many updates of one place, found by all threads at once.
#include <doctest/doctest.h>

#include "tests/support/emulated_kernel.h"

using namespace tilewright::tests;

namespace {

/// `count` updates of rows of `places`, drawn among these, so that many meet.
std::string scatter(const std::string &function, const std::string &type, int count, int places) {
    const std::string updates = "[5, " + std::to_string(count) + "]", whole = type + "[5, " + std::to_string(places) + "]";
    return "%x : " + whole + " = placeholder\n%i : int64" + updates + " = placeholder\n%v : " + type + updates + " = placeholder\n%y : " + whole +
           " = call_function aten." + function + "(self=%x, dim=1, index=%i, src=%v)\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("sums of scattered updates are atomic, whatever their type") {
    for (const char *type : {"float32", "float64", "int32", "int64", "int8"}) {
        CAPTURE(type);
        CHECK(check_emulated(scatter("scatter_add.default", type, 70, 9).c_str()) == "");
    }
    CHECK(check_emulated(scatter("scatter_add.default", "bfloat16", 8, 40).c_str()) == "");
}

TEST_CASE("the last of many updates of one place counts") {
    CHECK(check_emulated(scatter("scatter.src", "float32", 70, 9).c_str()) == "");
    CHECK(check_emulated(scatter("scatter.src", "bfloat16", 300, 2).c_str()) == "");
    CHECK(check_emulated(scatter("scatter.src", "int64", 5, 40).c_str()) == "");
}
