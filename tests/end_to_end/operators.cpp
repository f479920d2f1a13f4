// Every recorded case of every operator, exported by PyTorch and compiled for the CPU, gives PyTorch's value.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/recorded_operators.h"

using namespace tilewright::tests;

TEST_CASE("recorded operators") {
    const std::vector<std::string> families = operator_families();
    REQUIRE(!families.empty());
    for (const std::string &family : families) {
        check_recorded_operators(family, family + ".pt2", "cpu");
    }
}

TEST_CASE("recorded operators after run_decompositions") {
    for (const std::string &family : operator_families()) {
        if (std::filesystem::exists("tests/data/operators/" + family + ".core.pt2")) {
            check_recorded_operators(family, family + ".core.pt2", "cpu");
        }
    }
}
