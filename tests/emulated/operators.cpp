// Every recorded case of every operator through the whole GPU path, its kernels run by the emulation.
#include <doctest/doctest.h>

#include "tests/support/gpu.h"
#include "tests/support/recorded_operators.h"

using namespace tilewright::tests;

TEST_CASE("recorded operators on the emulated GPU") {
    tilewright::use_test_gpu();
    for (const std::string &family : operator_families()) {
        check_recorded_operators(family, family + ".pt2", "cuda");
    }
}
