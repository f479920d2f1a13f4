// Scatters on the host emulation: atomic sums of every type, and the last of many updates of one place, found by all threads at once.
#include <doctest/doctest.h>
#include <tuple>

#include "tests/support/emulated_kernel.h"

using namespace tilewright::tests;

namespace {

/// `count` updates of rows of `places`, drawn among these, so that many meet.
std::string scatter(const std::string &function, const std::string &type, int count, int places) {
    const std::string updates = "[5, " + std::to_string(count) + "]", whole = type + "[5, " + std::to_string(places) + "]";
    return "%x : " + whole + " = placeholder\n%i : int64" + updates + " = placeholder\n%v : " + type + updates +
           " = placeholder\n%y : " + whole + " = call_function aten." + function +
           "(self=%x, dim=1, index=%i, src=%v)\n%output = output(values=[%y])";
}

/// Whole rows of `columns` elements go where an index says.
std::string rows(const std::string &function, const std::string &source, const std::string &type, int count, int columns) {
    const std::string columns_text = std::to_string(columns), whole = type + "[9, " + columns_text + "]";
    return "%x : " + whole + " = placeholder\n%i : int64[" + std::to_string(count) + "] = placeholder\n%v : " + type + "[" +
           std::to_string(count) + ", " + columns_text + "] = placeholder\n%y : " + whole + " = call_function aten." + function +
           "(self=%x, dim=0, index=%i, " + source + "=%v)\n%output = output(values=[%y])";
}

}  // namespace

TEST_CASE("sums of scattered updates are atomic, whatever their type") {
    for (const char *type : {"float32", "float64", "int32", "int64", "int8"}) {
        CAPTURE(type);
        CHECK(check_emulated(scatter("scatter_add.default", type, 70, 9).c_str()) == "");
    }
    CHECK(check_emulated(scatter("scatter_add.default", "bfloat16", 8, 40).c_str()) == "");
}

/// index_reduce without what was there, or the like.
std::string reduced(const std::string &type, int count, int places, const std::string &reduce) {
    std::string text = scatter("scatter_reduce.two", type, count, places);
    return text.replace(text.find("src=%v"), 6, "src=%v, reduce=" + std::string("\"") + reduce + "\"");
}

TEST_CASE("extremes and products of scattered updates are atomic, whatever their type") {
    for (const char *reduce : {"amin", "amax", "prod"}) {
        for (const char *type : {"float32", "float64", "int32", "int64", "int16", "uint8", "int8"}) {
            CAPTURE(reduce);
            CAPTURE(type);
            CHECK(check_emulated(reduced(type, 70, 9, reduce).c_str()) == "");
        }
        CHECK(check_emulated(reduced("bfloat16", 8, 40, reduce).c_str()) == "");
    }
}

TEST_CASE("the last of many updates of one place counts") {
    CHECK(check_emulated(scatter("scatter.src", "float32", 70, 9).c_str()) == "");
    CHECK(check_emulated(scatter("scatter.src", "bfloat16", 300, 2).c_str()) == "");
    CHECK(check_emulated(scatter("scatter.src", "int64", 5, 40).c_str()) == "");
}

TEST_CASE("rows are added several elements at once, as many as their length allows") {
    for (const auto &[type, count, columns] :
         {std::tuple("float32", 70, 8), std::tuple("float32", 70, 6), std::tuple("float32", 70, 5), std::tuple("float64", 70, 6),
          std::tuple("int64", 70, 4), std::tuple("bfloat16", 8, 16), std::tuple("float16", 8, 12), std::tuple("bfloat16", 8, 7)}) {
        CAPTURE(type);
        CAPTURE(columns);
        CHECK(check_emulated(rows("index_add.default", "source", type, count, columns).c_str()) == "");
    }
}

TEST_CASE("a row is claimed as a whole by the last update of it") {
    CHECK(check_emulated(rows("index_copy.default", "source", "float32", 70, 8).c_str()) == "");
    CHECK(check_emulated(rows("index_copy.default", "source", "bfloat16", 70, 5).c_str()) == "");
}
