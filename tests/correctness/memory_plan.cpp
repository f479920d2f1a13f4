// Placement of intermediates by lifetime, and which steps run only once.
#include <doctest/doctest.h>

#include "runtime/memory_plan.h"

using namespace tilewright;

namespace {

PlanBuffer buffer(PlanBuffer::Kind kind, std::vector<Extent> sizes, int index = 0) {
    return {kind, "b", TensorMeta::contiguous(DType::float32, std::move(sizes)), index};
}

Step step(std::vector<int> reads, std::vector<int> writes) {
    CpuStep call{0, "f", {}};
    for (int b : reads) {
        call.arguments.push_back(BufferArgument{b, false, {}});
    }
    for (int b : writes) {
        call.arguments.push_back(BufferArgument{b, true, {}});
    }
    return {"k", {}, call, {}, {}};
}

using enum PlanBuffer::Kind;

/// input 0 → 1 → 2 → 3 → output 4, a chain of intermediates of `n` floats.
Plan chain(const Extent &n) {
    Plan plan;
    plan.buffers = {buffer(input, {n}), buffer(intermediate, {n}), buffer(intermediate, {n}), buffer(intermediate, {n}),
                    buffer(output, {n})};
    plan.steps = {step({0}, {1}), step({1}, {2}), step({2}, {3}), step({3}, {4})};
    return plan;
}

}  // namespace

TEST_CASE("an intermediate's bytes serve again once its last reader has run") {
    const MemoryLayout layout = plan_memory(chain(100), {});
    CHECK(layout.offsets == std::vector<std::int64_t>{-1, 0, 512, 0, -1});
    CHECK(layout.arena_bytes == 1024);
}

TEST_CASE("sizes follow the symbols") {
    const Plan plan = chain(Extent::symbol("s0") * 2);
    CHECK(plan_memory(plan, {{"s0", 8}}).arena_bytes == 512);
    CHECK(plan_memory(plan, {{"s0", 64}}).arena_bytes == 1024);
    CHECK(plan_memory(plan, {{"s0", 0}}).arena_bytes == 512);
}

TEST_CASE("tensors alive at once never overlap, whatever their sizes") {
    Plan plan;
    plan.buffers.push_back(buffer(input, {1}));
    for (int b = 1; b <= 40; ++b) {
        plan.buffers.push_back(buffer(intermediate, {b * 37 % 101 + 1}));
    }
    for (int b = 1; b <= 40; ++b) {
        std::vector<int> reads{0};
        for (int back : {1, 3, 7}) {
            if (b > back) {
                reads.push_back(b - back);
            }
        }
        plan.steps.push_back(step(reads, {b}));
    }
    const MemoryLayout layout = plan_memory(plan, {});
    std::int64_t sum = 0;
    for (int a = 1; a <= 40; ++a) {
        const auto end = [&](int b) { return layout.offsets[b] + plan.buffers[b].meta.sizes[0].value() * 4; };
        CHECK(layout.offsets[a] % 256 == 0);
        sum += (end(a) - layout.offsets[a] + 255) / 256 * 256;
        const int last_reader = a + 7 <= 40 ? a + 7 : a + 3 <= 40 ? a + 3 : std::min(a + 1, 40);
        for (int b = a + 1; b <= last_reader; ++b) {
            CHECK_MESSAGE((end(a) <= layout.offsets[b] || end(b) <= layout.offsets[a]), a, " and ", b);
        }
    }
    CHECK(layout.arena_bytes < sum / 2);
}

TEST_CASE("scratch of one step shares the arena, equal slots share bytes") {
    Plan plan = chain(100);
    auto &arguments = std::get<CpuStep>(plan.steps[1].action).arguments;
    arguments.insert(arguments.end(), {ScratchArgument{300, false, 0}, ScratchArgument{100, false, 1}, ScratchArgument{700, false, 0}});
    const MemoryLayout layout = plan_memory(plan, {});
    REQUIRE(layout.scratch[1].size() == 3);
    CHECK(layout.scratch[1][0] == layout.scratch[1][2]);
    CHECK(layout.scratch[1][0] != layout.scratch[1][1]);
    CHECK(layout.arena_bytes == 512 * 2 + 768 + 256);
}

TEST_CASE("steps that read weights alone run once") {
    Plan plan;
    const Extent s = Extent::symbol("s0");
    plan.buffers = {buffer(weight, {4}), buffer(intermediate, {4}), buffer(intermediate, {4}),
                    buffer(input, {s}),  buffer(intermediate, {s}), buffer(output, {4})};
    plan.steps = {step({0}, {1}), step({1}, {2}), step({2, 3}, {4}), step({2}, {5})};
    ConstantSteps constant = find_constant_steps(plan);
    CHECK(constant.steps == std::vector<bool>{true, true, false, false});
    CHECK(constant.buffers == std::vector<bool>{false, true, true, false, false, false});

    SUBCASE("not where a run changes the weight") {
        plan.buffers[4].write_back_to = 0;
        constant = find_constant_steps(plan);
        CHECK(constant.steps == std::vector<bool>{false, false, false, false});
    }
    SUBCASE("not where another step, that runs each time, writes the same tensor") {
        plan.steps.insert(plan.steps.begin() + 1, step({3}, {1}));
        constant = find_constant_steps(plan);
        CHECK(constant.steps == std::vector<bool>{false, false, false, false, false});
    }
}
