// The binary form of plans: the round trip, and damage.
#include <doctest/doctest.h>

#include <random>

#include "runtime/plan_archive.h"
#include "runtime/plan_cache.h"

using namespace tilewright;

namespace {

Plan sample() {
    const Extent s = Extent::symbol("s0");
    Plan plan;
    plan.target = TargetKind::cuda;
    plan.device = "sm_90a";
    plan.symbols["s0"] = {1, 64};
    plan.inputs = {{InputKind::user_input, "x", "", {}, {}},
                   {InputKind::parameter, "p_w", "w", HostTensor::zeros(DType::float32, {4}), {}}};
    plan.buffers = {{PlanBuffer::Kind::input, "x", TensorMeta::contiguous(DType::bfloat16, {s, 4}), 0},
                    {PlanBuffer::Kind::weight, "p_w", TensorMeta::contiguous(DType::float32, {4}), 1},
                    {PlanBuffer::Kind::intermediate, "t", TensorMeta::contiguous(DType::float32, {floor_div(s + 3, 4), 4}), 0},
                    {PlanBuffer::Kind::output, "out0", TensorMeta::contiguous(DType::float32, {s * 2}), 0}};
    plan.user_inputs = {0};
    plan.user_outputs = {3};
    plan.code = {{"k", {std::byte{1}, std::byte{2}}, "__global__ void k() {}", 40, 8, 16, 1024, 0}};
    LaunchStep launch{0, "k", {ceil_div(s, 128), 1, 1}, {128, 1, 1}, {2, 1, 1}, 4096, true, {}};
    launch.arguments = {BufferArgument{0, false, {}},
                        BufferArgument{2, true, {}},
                        ScalarArgument{s, 8},
                        StatusArgument{},
                        ScratchArgument{s * 4, true, 1},
                        TensorMapArgument{1, DType::float32, {4}, {}, {4}, 128, 256, 0, false}};
    plan.steps = {{"k", {0}, launch, {{s, "<=", 16}}, {{{s, ">", 3}}}},
                  {"mm", {}, MatmulEngineStep{.a = 2, .b = 1, .d = 3, .m = s}, {}, {}}};
    plan.index_sites = {{"node embedding"}};
    return plan;
}

}  // namespace

TEST_CASE("a plan comes back as it was") {
    const Plan plan = sample();
    const auto loaded = load_plan(save_plan(plan));
    REQUIRE(loaded.has_value());
    CHECK(print(*loaded) == print(plan));
    CHECK(loaded->code[0].image == plan.code[0].image);
    CHECK(loaded->index_sites[0].message == "node embedding");
    CHECK(save_plan(*loaded) == save_plan(plan));
}

TEST_CASE("any damage is noticed") {
    const std::vector<std::byte> bytes = save_plan(sample());
    std::mt19937 random(7);
    INFO("seed 7");
    for (int i = 0; i < 300; ++i) {
        std::vector<std::byte> damaged = bytes;
        if (i % 3 == 0) {
            damaged.resize(random() % bytes.size());
        } else {
            damaged[random() % bytes.size()] ^= static_cast<std::byte>(1u << (random() % 8));
        }
        CHECK_FALSE(load_plan(damaged).has_value());
    }
}

TEST_CASE("steps of variants run for their sizes") {
    const Step step = sample().steps[0];  // when s0 <= 16, unless s0 > 3
    CHECK(step.runs_for({{"s0", 2}}));
    CHECK_FALSE(step.runs_for({{"s0", 8}}));
    CHECK_FALSE(step.runs_for({{"s0", 20}}));
}

TEST_CASE("the cache finds what it stored and ignores a damaged entry") {
    const std::string folder =
        std::string(std::getenv("TILEWRIGHT_BINARY_DIR") ? std::getenv("TILEWRIGHT_BINARY_DIR") : "/tmp") + "/plan_cache_test";
    const PlanCache cache(folder);
    CHECK_FALSE(cache.find("absent").has_value());
    cache.store("key", sample());
    REQUIRE(cache.find("key").has_value());
    CHECK(print(*cache.find("key")) == print(sample()));
    FILE *file = std::fopen((folder + "/plans/key.plan").c_str(), "r+b");
    REQUIRE(file);
    std::fseek(file, 100, SEEK_SET);
    std::fputc(0x55, file);
    std::fclose(file);
    CHECK_FALSE(cache.find("key").has_value());
    CHECK_FALSE(PlanCache("").find("key").has_value());
}
