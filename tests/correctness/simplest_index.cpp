// Index expressions in their simplest form.
#include <doctest/doctest.h>

#include <sstream>

#include "dsl/algorithm/expression.h"
#include "lowering/fusion/index_map.h"

using namespace tilewright;
using Halide::Expr;
using Halide::Var;

TEST_CASE("whole multiples leave a remainder, however deep in its sum they stand") {
    const std::vector<IndexAxis> axes{{"d0", 2}, {"d1", 8}, {"d2", 512}, {"d3", 128}};
    const Expr d0 = Var("d0"), d1 = Var("d1"), d2 = Var("d2"), d3 = Var("d3");
    const Expr place = ((d0 * 512 + d2) * 1536 + d1 * 7 + d3 + 1280) % 1536;
    const SamplePoints samples(axes, {});
    std::ostringstream text;
    const Expr simplest = simplest_index(place, axes, samples);
    text << simplest;
    CHECK_MESSAGE(text.str().find('%') == std::string::npos, text.str());
    CHECK(samples.evaluate(simplest) == samples.evaluate(place));
}

TEST_CASE("a remainder that its sum may exceed stays") {
    const std::vector<IndexAxis> axes{{"d0", 2}, {"d1", 100}};
    const Expr d0 = Var("d0"), d1 = Var("d1");
    const Expr simplest = simplest_index((d0 * 64 + d1 + 3) % 32, axes, SamplePoints(axes, {}));
    CHECK(Halide::Internal::equal(simplest, (d1 + 3) % 32));
}
