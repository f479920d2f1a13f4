// Inputs that kernels are measured with: places spread over the axes that they index, values that do not repeat along rows.
#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "autotune/inputs/draw_inputs.h"
#include "autotune/inputs/index_bounds.h"
#include "autotune/inputs/value_sources.h"
#include "tests/support/hand_written.h"

using namespace tilewright;

TEST_CASE("an index's bound is the smallest axis that it is a place of") {
    const tests::HandWritten gather = tests::gather_rows(40, 8, 16);
    const auto bounds = index_bounds(gather.kernel.algorithm, {});
    REQUIRE(bounds.size() == 1);
    CHECK(bounds.begin()->second == 40);
    const auto scatter = index_bounds(tests::scatter_add(40, 8, 16).kernel.algorithm, {});
    REQUIRE(scatter.size() == 1);
    CHECK(scatter.begin()->second == 40);
    CHECK(index_bounds(tests::softmax(4, 8).kernel.algorithm, {}).empty());
}

TEST_CASE("drawn values: integers below their bound, periods that no row length divides, the same seed the same values") {
    const HostTensor places = draw_tensor(DType::int64, {1000}, {1}, 40, 7);
    std::set<std::int64_t> seen;
    for (int i = 0; i < 1000; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, places.data() + 8 * i, 8);
        CHECK(value >= 0);
        CHECK(value < 40);
        seen.insert(value);
    }
    CHECK(seen.size() == 40);
    const HostTensor large = draw_tensor(DType::float32, {1024, 2048}, {2048, 1}, 0, 7);
    const auto *values = reinterpret_cast<const float *>(large.data());
    CHECK(values[0] == values[1048573]);
    CHECK(std::memcmp(values, values + 512 * 2048, 2048 * sizeof(float)) != 0);
    CHECK(std::memcmp(draw_tensor(DType::float32, {64}, {1}, 0, 7).data(), values, 64) == 0);
}

TEST_CASE("inputs come from the user's file where the model's own are read") {
    const tests::HandWritten gather = tests::gather_rows(40, 8, 16);
    Program program;
    for (const char *name : {"weight", "tokens"}) {
        InputSpec &input = program.inputs.emplace_back();
        input.placeholder = name;
        input.kind = std::string(name) == "tokens" ? InputKind::user_input : InputKind::parameter;
    }
    KernelCall call;
    call.inputs = {"weight", "tokens"};
    const std::vector<std::string> given = value_sources(program, gather.kernel, call, {}, true);
    const std::vector<std::string> drawn = value_sources(program, gather.kernel, call, {}, false);
    CHECK(given == std::vector<std::string>{"0", "in0"});
    CHECK(drawn == std::vector<std::string>{"0", "40"});
}
