// Lines of a thread that read the same rows of memory: each row is loaded once, whatever the step between lines and what each line wants of
// it.
#include <doctest/doctest.h>

#include "lowering/passes/window_lines.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

/// Sum of slices of a tensor [rows, columns]: (first row, first column, step of rows).
struct Slice {
    int row, column, step;
};

std::string sum_of(const std::string &type, int rows, int columns, const std::vector<Slice> &slices, int out_rows, int out_columns) {
    const std::string whole = type + "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
    const std::string out = type + "[" + std::to_string(out_rows) + ", " + std::to_string(out_columns) + "]";
    const std::string part = type + "[" + std::to_string(out_rows) + ", " + std::to_string(columns) + "]";
    std::string text = "%x : " + whole + " = placeholder\n", last;
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const std::string n = std::to_string(i);
        const int end = slices[i].row + (out_rows - 1) * slices[i].step + 1;
        text += "%r" + n + " : " + part + " = call_function aten.slice.Tensor(self=%x, dim=0, start=" + std::to_string(slices[i].row) +
                ", end=" + std::to_string(end) + ", step=" + std::to_string(slices[i].step) + ")\n";
        text += "%c" + n + " : " + out + " = call_function aten.slice.Tensor(self=%r" + n +
                ", dim=1, start=" + std::to_string(slices[i].column) + ", end=" + std::to_string(slices[i].column + out_columns) + ")\n";
        if (i > 0) {
            text += "%s" + n + " : " + out + " = call_function aten.add.Tensor(self=" + last + ", other=%c" + n + ")\n";
        }
        last = i > 0 ? "%s" + n : "%c0";
    }
    return text + "%output = output(values=[" + last + "])";
}

}  // namespace

TEST_CASE("rows of three lines' windows are numbered, and begin at equal distances") {
    const auto rows = share_lines({{0, 6}, {100, 106}, {200, 206}}, 100, 3, 4, 0);
    REQUIRE(rows);
    CHECK(rows->rows.size() == 5);
    CHECK(rows->spacing == 100);
    CHECK(rows->pieces == 2);
    CHECK(rows->first_row == std::vector<std::int64_t>{0, 1, 2});
    const auto strided = share_lines({{0, 6}, {100, 106}, {200, 206}}, 200, 3, 2, 0);
    REQUIRE(strided);
    CHECK(strided->rows.size() == 7);
    CHECK(strided->step == 2);
    CHECK(!share_lines({{0, 6}}, 100, 3, 2, 0));                          // nothing shared
    CHECK(!share_lines({{0, 6}, {100, 106}}, 100, 3, 8, 0));              // rows begin where an access may not
    CHECK(!share_lines({{0, 6}, {100, 106}, {300, 306}}, 300, 3, 2, 0));  // unequal distances
}

TEST_CASE("boxes, crosses and every other line") {
    const std::vector<Slice> box{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {2, 0, 1}, {2, 1, 1}, {2, 2, 1}};
    CHECK(check_emulated(sum_of("float32", 10, 70, box, 8, 68).c_str()) == "");
    CHECK(check_emulated(sum_of("float32", 10, 67, box, 8, 65).c_str()) == "");
    CHECK(check_emulated(sum_of("bfloat16", 18, 130, box, 16, 128).c_str()) == "");
    CHECK(check_emulated(sum_of("int32", 10, 70, box, 8, 68).c_str()) == "");
    CHECK(check_emulated(sum_of("float32", 10, 66, {{0, 1, 1}, {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {2, 1, 1}}, 8, 64).c_str()) == "");
    CHECK(check_emulated(sum_of("float32", 17, 66, {{0, 0, 2}, {1, 1, 2}, {2, 2, 2}}, 8, 64).c_str()) == "");
    CHECK(check_emulated(sum_of("float32", 11, 64, {{0, 0, 1}, {3, 0, 1}}, 8, 64).c_str()) == "");
}

TEST_CASE("rows of any length and phase: vectors that lie inside go as a whole, moved to where the row is aligned if that pays") {
    const std::vector<Slice> box{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {2, 0, 1}, {2, 1, 1}, {2, 2, 1}};
    const std::vector<Slice> cross{{0, 1, 1}, {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {2, 1, 1}};
    for (const int columns : {2053, 2054, 2055}) {
        CHECK(check_emulated(sum_of("float32", 13, columns, box, 11, columns - 2).c_str()) == "");
        CHECK(check_emulated(sum_of("bfloat16", 7, columns, cross, 5, columns - 2).c_str()) == "");
    }
    std::vector<Slice> wide;  // enough reads for lines that are not shifted one by one
    for (int i = 0; i < 25; ++i) {
        wide.push_back({i / 5, i % 5, 1});
    }
    for (const int columns : {71, 74, 2055}) {
        CHECK(check_emulated(sum_of("float32", 14, columns, wide, 10, columns - 4).c_str()) == "");
    }
    CHECK(check_emulated(sum_of("float16", 14, 77, wide, 10, 73).c_str()) == "");
}
