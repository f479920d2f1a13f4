#include <doctest/doctest.h>
#include <random>

#include "dsl/error.h"
#include "dsl/graph/extent.h"
#include "dsl/graph/simplify_extent.h"

using namespace tilewright;

namespace {
Extent e(const char *text) { return Extent::parse(text); }
std::string canonical(const char *text) { return e(text).to_string(); }
}  // namespace

TEST_CASE("equal expressions have one canonical form") {
    CHECK(canonical("1 + s0*2 + s0*2") == "s0*4 + 1");
    CHECK(canonical("(s0 + 1)*(s0 - 1)") == "s0*s0 - 1");
    CHECK(canonical("s1*s0 - s0*s1") == "0");
    CHECK(canonical("s10 + s2") == "s2 + s10");
    CHECK(canonical("-s0*3 + 2") == "-s0*3 + 2");
    CHECK(canonical("s0**2*4 - s0") == "s0*s0*4 - s0");
    CHECK(e("s0*s1 + s0") == e("s0*(s1 + 1)"));
    CHECK(canonical("-(-5)") == "5");
    CHECK(canonical("-2**2") == "-4");
    CHECK(canonical("-9223372036854775808") == "-9223372036854775808");
}

TEST_CASE("quotients and remainders are simplified") {
    CHECK(canonical("(s0*4 + 3)//4") == "s0");
    CHECK(canonical("(s0*4 + 5)//4") == "s0 + 1");
    CHECK(canonical("s0*6//4") == "s0 + s0//2");
    CHECK(canonical("s0//2//3") == "s0//6");
    CHECK(canonical("(s0//2 + 1)//3") == "(s0 + 2)//6");
    CHECK(canonical("s0*s1*64//s0") == "s1*64");
    CHECK(canonical("(s0*s1 + s1 + s0 + 1)//(s0 + 1)") == "s1 + 1");
    CHECK(canonical("(s0 - 1)//2 + 1") == "(s0 + 1)//2");
    CHECK(canonical("(s0*2)//(s1*2)") == "s0//s1");
    CHECK(canonical("Mod(s0*4 + 5, 4)") == "1");
    CHECK(canonical("Mod(Mod(s0, 12), 4)") == "Mod(s0, 4)");
    CHECK(canonical("Mod(s0*2, 4)") == "Mod(s0, 2)*2");
    CHECK(canonical("Mod(s0*s1, s1)") == "0");
    CHECK(canonical("(s0//2)*4 + 1") == "(s0//2)*4 + 1");
    CHECK(ceil_div(Extent::symbol("s0"), 8).to_string() == "(s0 + 7)//8");
}

TEST_CASE("minimum and maximum keep what can win") {
    CHECK(canonical("Max(1, s0, 3)") == "Max(s0, 3)");
    CHECK(canonical("Min(s0, s0 + 1)") == "s0");
    CHECK(canonical("Max(Max(s1, s0), s0)") == "Max(s0, s1)");
}

TEST_CASE("ranges decide minima, maxima and remainders") {
    const SymbolRanges ranges = {{"s0", {2, 64}}, {"s1", {0, 8}}};
    CHECK(simplify(e("Max(s0, 1)*4"), ranges).to_string() == "s0*4");
    CHECK(simplify(e("Max(s1, 1)"), ranges).to_string() == "Max(s1, 1)");
    CHECK(simplify(e("Min(s0, 64)"), ranges).to_string() == "s0");
    CHECK(simplify(e("Mod(s0, 65) + s1//9"), ranges).to_string() == "s0");
    CHECK(simplify(e("Max(s0 - Mod(s0, 16) + 16, 1)"), ranges).to_string() == "s0 - Mod(s0, 16) + 16");
}

TEST_CASE("the forms that torch.export writes are read") {
    CHECK(canonical("Symbol('s58', positive=True, integer=True)") == "s58");
    CHECK(canonical("Mul(Integer(2), Symbol('s0', positive=True, integer=True))") == "s0*2");
    CHECK(canonical("Add(Symbol('s0', integer=True), Integer(-1))") == "s0 - 1");
    CHECK(canonical("Pow(Symbol('s0', integer=True), Integer(2))") == "s0*s0");
    CHECK(canonical("FloorDiv(s0, 2)") == "s0//2");
    CHECK(canonical("PythonMod(s0, 2)") == "Mod(s0, 2)");
    CHECK(canonical("s0 % 2") == "Mod(s0, 2)");
    CHECK(canonical("floor(s0/2)") == "s0//2");
    CHECK(canonical("floor(Mul(Rational(1, 2), s0))") == "s0//2");
    CHECK(canonical("CeilToInt(IntTrueDiv(s0, 2))") == "s0 - (s0//2)");
}

TEST_CASE("random expressions keep their value through simplification and text") {
    std::mt19937 random(7);
    const char *names[] = {"s0", "s1", "s2"};
    for (int round = 0; round < 2000; ++round) {
        const SymbolValues values = {{"s0", random() % 9 + 1}, {"s1", random() % 9 + 1}, {"s2", random() % 50 + 1}};
        Extent expression = Extent::symbol(names[random() % 3]);
        std::int64_t value = expression.evaluate(values);
        for (int step = 0; step < 6; ++step) {
            const Extent other = random() % 2 ? Extent(static_cast<int>(random() % 9) + 1) : Extent::symbol(names[random() % 3]);
            const std::int64_t o = other.evaluate(values);
            const auto quotient = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
            switch (random() % 7) {
                case 0:
                    expression = expression + other;
                    value += o;
                    break;
                case 1:
                    expression = expression - other;
                    value -= o;
                    break;
                case 2:
                    expression = expression * other;
                    value *= o;
                    break;
                case 3:
                    expression = floor_div(expression, other);
                    value = quotient(value, o);
                    break;
                case 4:
                    expression = mod(expression, other);
                    value -= quotient(value, o) * o;
                    break;
                case 5:
                    expression = min(expression, other);
                    value = std::min(value, o);
                    break;
                default:
                    expression = max(expression, other);
                    value = std::max(value, o);
                    break;
            }
        }
        CAPTURE(expression.to_string());
        CHECK(expression.evaluate(values) == value);
        CHECK(Extent::parse(expression.to_string()) == expression);
        const SymbolRange range = expression.bounds({{"s0", {1, 9}}, {"s1", {1, 9}}, {"s2", {1, 50}}});
        CHECK(range.min <= value);
        CHECK(value <= range.max);
        std::map<std::string, Extent> constants;
        for (const auto &[name, number] : values) {
            constants.emplace(name, number);
        }
        CHECK(simplify(expression, {{"s0", {1, 9}}, {"s1", {1, 9}}, {"s2", {1, 50}}}).evaluate(values) == value);
        CHECK(expression.substitute(constants) == Extent(value));
    }
}

TEST_CASE("overflow, unknown symbols and hostile text are refused") {
    CHECK_THROWS_WITH_AS(e("s0").evaluate({}), doctest::Contains("s0 has no value"), UserError);
    CHECK_THROWS_WITH_AS(e("s0*s0").evaluate({{"s0", INT64_MAX}}), doctest::Contains("s0*s0 overflows"), UserError);
    CHECK_THROWS_WITH_AS(e("9223372036854775807 + 1"), doctest::Contains("overflows"), UserError);
    CHECK_THROWS_WITH_AS(e("99999999999999999999"), doctest::Contains("more than 64 bits"), UserError);
    CHECK_THROWS_WITH_AS(e("s0 // 0"), doctest::Contains("divides by zero"), UserError);
    CHECK_THROWS_WITH_AS(e("s0 +"), doctest::Contains("column 5"), UserError);
    CHECK_THROWS_WITH_AS(e("s0/2"), doctest::Contains("not rounded"), UserError);
    CHECK_THROWS_WITH_AS(e("Where(s0, 1)"), doctest::Contains("Where"), UserError);
    CHECK_THROWS_AS(Extent::parse(std::string(60000, '(')), UserError);
    CHECK(Extent::parse(std::string(60000, '-') + "1") == Extent(1));
    std::string product = "1";
    for (int i = 0; i < 40; ++i) {
        product += "*(a" + std::to_string(i) + " + 1)";
    }
    CHECK_THROWS_AS(Extent::parse(product), UserError);
}
