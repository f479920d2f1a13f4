// Where along an axis a mask can hold, for a block of rows: never narrower than it is, and exact for the masks of attention.
#include <doctest/doctest.h>

#include "lowering/passes/possible_range.h"

using namespace tilewright;
using Halide::Expr;

namespace {

const Expr row = Halide::Internal::Variable::make(Halide::Int(32), "row"),
           column = Halide::Internal::Variable::make(Halide::Int(32), "column");

/// For rows 64 to 127, as "first..last"; an end that is unbounded is left out.
std::string range_of_block(const Expr &mask) {
    const PossibleRange range = possible_range(mask, "column", {{"row", {Expr(64), Expr(127)}}});
    const auto text = [](const Expr &e) {
        const auto value = e.defined() ? Halide::Internal::as_const_int(Halide::Internal::simplify(e)) : std::nullopt;
        return value ? std::to_string(*value) : std::string(e.defined() ? "?" : "");
    };
    return text(range.first) + ".." + text(range.last);
}

Expr wide(const Expr &e) { return Halide::cast<std::int64_t>(e); }

}  // namespace

TEST_CASE("causal masks and windows, either way round, in 32 and 64 bits") {
    CHECK(range_of_block(column <= row) == "..127");
    CHECK(range_of_block(wide(row) > wide(column)) == "..126");
    CHECK(range_of_block(!(column > row)) == "..127");
    CHECK(range_of_block(column <= row && column > row - 16) == "49..127");
    CHECK(range_of_block(!(column > row || wide(column) < wide(row) - Expr(static_cast<std::int64_t>(50)))) == "14..127");
    CHECK(range_of_block(row - column < 8) == "57..");
    CHECK(range_of_block(column == row + 3) == "67..130");
}

TEST_CASE("a prefix that all rows see widens the range; what excludes nothing leaves it") {
    CHECK(range_of_block(column <= row || column < 200) == "..199");
    CHECK(range_of_block(column >= row || column < 10) == "..");
    CHECK(range_of_block(column != row) == "..");
    CHECK(range_of_block(column % 2 == row) == "..");
    CHECK(range_of_block(column < 90) == "..89");
}
