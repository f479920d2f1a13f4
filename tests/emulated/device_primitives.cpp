#include "lowering/cuda/emulate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace tilewright;

namespace {

template<typename T> EmulatedBuffer buffer(std::vector<T> &values) {
    auto *start = reinterpret_cast<std::byte *>(values.data());
    return {start, start, start + values.size() * sizeof(T)};
}

const char *row_sums = R"(#include "tilewright_device.h"
extern "C" __global__ void row_sums(tw::in<float> x, tw::out<float> y, int columns) {
    __shared__ tw::shared_array<float, 4> partial;
    float total = 0.0F;
    for (int i = threadIdx.x; i < columns; i += 128) {
        total += x[blockIdx.x * columns + i];
    }
    total = tw::reduce_across<128>(total, tw::sum{}, partial);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = total;
    }
}
)";

EmulatedLaunch row_sums_launch(std::vector<float> &x, std::vector<float> &y, int columns) {
    return {.function = "row_sums",
            .grid = {static_cast<unsigned>(y.size()), 1, 1},
            .block = {128, 1, 1},
            .arguments = {buffer(x), buffer(y), std::int64_t{columns}}};
}

/// What the emulation says of a kernel of one block of 64 threads with `float` buffers x and y of 64 elements.
std::string fault_of(const std::string &body) {
    const EmulatedModule module(
        {{"fault",
          "#include \"tilewright_device.h\"\nextern \"C\" __global__ void fault(tw::in<float> x, tw::out<float> y) {\n"
          "    __shared__ tw::shared_array<float, 64> s;\n    const int t = threadIdx.x;\n" +
              body + "\n}\n",
          {"fault"}}});
    std::vector<float> x(64, 1.0F);
    std::vector<float> y(64, 0.0F);
    try {
        module.launch({.function = "fault", .block = {64, 1, 1}, .arguments = {buffer(x), buffer(y)}});
    } catch (const EmulationFault &fault) {
        return fault.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a block reduction gives each row's sum") {
    const EmulatedModule module({{"row_sums", row_sums, {"row_sums"}}});
    std::vector<float> x(3 * 300);
    for (int i = 0; i < 900; i++) {
        x[i] = static_cast<float>(i % 7);
    }
    std::vector<float> y(3, NAN);
    module.launch(row_sums_launch(x, y, 300));
    for (int row = 0; row < 3; row++) {
        float expected = 0;
        for (int i = 0; i < 300; i++) {
            expected += x[row * 300 + i];
        }
        CHECK(y[row] == expected);
    }
    CHECK_THROWS_WITH_AS(module.launch(row_sums_launch(x, y, 301)),
                         doctest::Contains("row_sums, block (2, 0, 0), thread 42: access outside of its buffer"), EmulationFault);
}

TEST_CASE("faults that a GPU would hide are named") {
    CHECK(fault_of("s[t] = x[t]; tw::sync_block(); y[t] = s[63 - t];") == "");
    CHECK(fault_of("s[t] = x[t]; y[t] = s[63 - t];").find("reads") != std::string::npos);
    CHECK(fault_of("s[t] = x[t]; tw::sync_block(); if (t < 32) y[t] = s[63 - t]; else s[t] = 0;").find("overwrites what thread") !=
          std::string::npos);
    CHECK(fault_of("s[t] = x[t]; tw::sync_block(); y[t] = s[t + 1];").find("outside of its array in shared memory: place 64 of 64") !=
          std::string::npos);
    CHECK(fault_of("y[t] = x[t + 1];").find("place 64 of 64") != std::string::npos);
    CHECK(fault_of("if (t < 63) tw::sync_block();").find("for thread 63, which has left the kernel") != std::string::npos);
    CHECK(fault_of("if (t < 32) {\n tw::sync_block();\n } else {\n tw::sync_block();\n }").find("waits at the barrier of fault:8") !=
          std::string::npos);
    CHECK(fault_of("if (t < 32) tw::sync_block(); else tw::sync_warp(); ").find("which has left the kernel") != std::string::npos);
    CHECK(fault_of("y[t] = s[t];").find("nobody has written") != std::string::npos);
    CHECK(fault_of("tw::store<4>(y, t % 4 + 1, tw::load<4>(x, 0));").find("misaligned") != std::string::npos);
    CHECK(fault_of("s[0] = 1.0F;").find("overwrites what thread 0 wrote") != std::string::npos);
}

TEST_CASE("scans, sorts and reductions that do not commute keep their order") {
    const EmulatedModule module({{"ordered",
                                  R"(#include "tilewright_device.h"
extern "C" __global__ void ordered(tw::in<float> x, tw::out<float> sums, tw::out<float> sorted, tw::out<tw::int64> places, tw::out<float> last, int n) {
    __shared__ tw::shared_array<float, 8> scratch;
    __shared__ tw::shared_array<tw::uint32, 256> keys;
    __shared__ tw::shared_array<tw::uint16, 256> order;
    __shared__ tw::shared_array<int, 8 * 256> counts;
    __shared__ tw::shared_array<int, 256> starts;
    __shared__ tw::shared_array<int, 32> sums_of_warps;
    const int t = threadIdx.x;
    const float own = t < n ? x[t] : 0.0F;
    const auto scan = tw::scan_across<256>(own, tw::sum{}, scratch);
    const float newest = tw::reduce_across<256>(own, tw::last{}, scratch);
    for (int i = t; i < n; i += 256) {
        sums[i] = scan.inclusive;
    }
    last[t] = newest + 0.0F * scan.total;
    tw::uint32 key[1] = {t < n ? tw::sort_key(own, true) : 0xffffffffU};
    int place[1] = {t};
    tw::sort_block<256>(key, place, n, keys, order, counts, starts, sums_of_warps);
    if (t < n) {
        sorted[t] = tw::sorted_value<float>(static_cast<tw::uint32>(keys[t]), true);
        places[t] = order[t];
    }
})",
                                  {"ordered"}}});
    const int n = 203;
    std::vector<float> x(n);
    for (int i = 0; i < n; i++) {
        x[i] = static_cast<float>((i * 37) % 19);
    }
    std::vector<float> sums(n), sorted(n), last(256);
    std::vector<long long> places(n);
    module.launch({.function = "ordered",
                   .block = {256, 1, 1},
                   .arguments = {buffer(x), buffer(sums), buffer(sorted), buffer(places), buffer(last), std::int64_t{n}}});
    float running = 0;
    for (int i = 0; i < n; i++) {
        running += x[i];
        CHECK(sums[i] == running);
        CHECK(sorted[i] == x[places[i]]);
        if (i > 0) {
            CHECK((sorted[i - 1] > sorted[i] || (sorted[i - 1] == sorted[i] && places[i - 1] < places[i])));
        }
    }
    CHECK(last[0] == 0.0F);
    CHECK(last[255] == 0.0F);
}
