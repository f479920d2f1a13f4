// Every core operator's translation, computed by the reference evaluator, against the values of PyTorch.
#include <doctest/doctest.h>

#include "lowering/translate/translate.h"
#include "tests/support/operator_cases.h"
#include "tests/support/reference.h"

using namespace tilewright;

namespace {

void check_family(const char *family) {
    for (const tests::OperatorCase &test : tests::operator_cases(family)) {
        CAPTURE(test.name);
        Translated translated = translate(test.program);
        verify(translated.algorithm);
        CAPTURE(print(translated.algorithm));
        tests::ReferenceResult result = tests::evaluate(translated.algorithm, test.inputs);
        CHECK(!result.index_error);
        for (const auto &[name, expected] : test.expected) {
            CHECK(tests::difference(result.outputs.at(name), expected, 2e-6) == "");
        }
    }
}

}  // namespace

TEST_CASE("pointwise operators") { check_family("pointwise"); }
TEST_CASE("views") { check_family("views"); }
TEST_CASE("reductions") { check_family("reductions"); }
TEST_CASE("scans") { check_family("scans"); }
TEST_CASE("contractions and windows") { check_family("contractions"); }
TEST_CASE("indexing") { check_family("indexing"); }
TEST_CASE("sorts") { check_family("sorts"); }
