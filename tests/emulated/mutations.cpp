// Programs that write their inputs and buffers, on the emulated GPU.
#include <doctest/doctest.h>

#include "tests/support/gpu.h"
#include "tests/support/recorded_mutations.h"

TEST_CASE("mutations on the emulated GPU") {
    tilewright::use_test_gpu();
    tilewright::tests::check_recorded_mutations("cuda");
}
