// Taking kernels apart, and reading the choice back from a schedule file.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lowering/translate/translate.h"
#include "tests/support/partitions.h"
#include "tests/support/program_text.h"

using namespace tilewright;
using tests::partition_of;
using tests::stages_of;

namespace {

const std::string linear = R"(%a : float32[32, 16] = placeholder
%b : float32[16, 64] = placeholder
%bias : float32[64] = placeholder
%d : float32[32, 64] = call_function tw.dot(a=%a, b=%b, out_dtype=torch.float32)
%bb : float32[32, 64] = call_function prims.broadcast_in_dim(a=%bias, size=[32, 64], dims=[1])
%s : float32[32, 64] = call_function prims.add(a=%d, b=%bb)
%y : float32[32, 64] = call_function prims.tanh(a=%s)
%output = output(values=[%y]))";

ScheduleFile file_of(const Partition &partition) {
    ScheduleFile file;
    for (const Kernel &kernel : partition.kernels) {
        file.kernels.push_back({kernel.name, kernel.hash.to_string(), {}, {}, {{}}, {}, {}});
    }
    return file;
}

}  // namespace

TEST_CASE("a kernel is taken apart after the stages that are named") {
    const Partition whole = partition_of(linear);
    CHECK(stages_of(whole) == "dot add tanh");
    CHECK(cuts_worth_trying(whole.kernels[0]).front() == std::vector<std::string>{"dot"});
    FusionOptions options;
    options.cuts[whole.kernels[0].hash] = {"dot"};
    const Partition apart = partition_of(linear, options);
    CHECK(stages_of(apart) == "dot | add tanh");
    CHECK(tests::decision(apart, "d", "s").reason == "the schedule cuts here");
    options.cuts[whole.kernels[0].hash] = {"add"};
    CHECK(stages_of(partition_of(linear, options)) == "dot add | tanh");
}

TEST_CASE("every cut that is worth trying gives a sound partition with the same outputs") {
    const std::string lines = "%x : float32[8, 64] = placeholder\n%h : float32[8, 64] = call_function prims.sin(a=%x)\n" +
                              tests::softmax_lines("h", "y", 8, 64) + "%output = output(values=[%y])\n";
    const Partition whole = partition_of(lines);
    const auto cuts = cuts_worth_trying(whole.kernels[0]);
    CHECK(cuts.size() >= 3);
    for (const auto &cut : cuts) {
        FusionOptions options;
        options.cuts[whole.kernels[0].hash] = cut;
        const Partition apart = partition_of(lines, options);
        CHECK(apart.kernels.size() > 1);
        CHECK(apart.calls.back().outputs == std::vector<std::string>{"out0"});
    }
}

TEST_CASE("a file of parts gives the parts again, a file of the whole the whole") {
    const Partition whole = partition_of(linear);
    FusionOptions options;
    options.cuts[whole.kernels[0].hash] = {"dot"};
    const Partition apart = partition_of(linear, options);
    const Algorithm algorithm = translate(tests::program_from(linear)).algorithm;
    CHECK(stages_of(partition_for(algorithm, {}, file_of(whole))) == "dot add tanh");
    CHECK(stages_of(partition_for(algorithm, {}, file_of(apart))) == "dot | add tanh");
    CHECK(stages_of(partition_for(algorithm, {}, ScheduleFile{})) == "dot add tanh");
}

TEST_CASE("a file with a streaming kernel gives the streaming kernel") {
    const std::string lines =
        R"(%q : float32[32, 16] = placeholder
%k : float32[16, 64] = placeholder
%v : float32[64, 16] = placeholder
%s : float32[32, 64] = call_function tw.dot(a=%q, b=%k, out_dtype=torch.float32)
)" + tests::softmax_lines("s", "p", 32, 64) +
        "%o : float32[32, 16] = call_function tw.dot(a=%p, b=%v, out_dtype=torch.float32)\n%output = output(values=[%o])\n";
    FusionOptions streaming;
    streaming.streaming = true;
    const Partition streamed = partition_of(lines, streaming);
    REQUIRE(streamed.kernels.size() == 1);
    const Algorithm algorithm = translate(tests::program_from(lines)).algorithm;
    CHECK(partition_for(algorithm, {}, file_of(streamed)).kernels.size() == 1);
    CHECK(partition_for(algorithm, streaming, file_of(partition_of(lines))).kernels.size() == 3);
}

TEST_CASE("a file with both products of a gate at once gives them at once, also where other products have the algorithm of one alone") {
    const std::string lines = R"(%x : float32[32, 16] = placeholder
%a : float32[16, 64] = placeholder
%b : float32[16, 64] = placeholder
%y : float32[32, 24] = placeholder
%c : float32[24, 64] = placeholder
%d : float32[32, 64] = call_function tw.dot(a=%x, b=%a, out_dtype=torch.float32)
%t : float32[32, 64] = call_function prims.tanh(a=%d)
%e : float32[32, 64] = call_function tw.dot(a=%x, b=%b, out_dtype=torch.float32)
%m : float32[32, 64] = call_function prims.mul(a=%t, b=%e)
%f : float32[32, 64] = call_function tw.dot(a=%y, b=%c, out_dtype=torch.float32)
%output = output(values=[%m, %f]))";
    Program program = tests::program_from(lines);
    const Algorithm algorithm = translate(program).algorithm;
    FusionOptions gating;
    gating.gating = true;
    const Partition at_once = partition_of(lines, gating), apart = partition_of(lines);
    REQUIRE(at_once.kernels.size() == 2);
    REQUIRE(apart.kernels.size() == 3);
    CHECK(partition_for(algorithm, {}, file_of(at_once)).kernels.size() == 2);
    CHECK(partition_for(algorithm, {}, file_of(apart)).kernels.size() == 3);
}

TEST_CASE("a file of kernels that are fused or left apart at any price gives them again") {
    const std::string lines = R"(%x : float32[32, 16] = placeholder
%w : float32[16, 64] = placeholder
%s : float32[32, 16] = call_function prims.exp(a=%x)
%m : float32[32, 16] = call_function prims.mul(a=%s, b=%x)
%d : float32[32, 64] = call_function tw.dot(a=%m, b=%w, out_dtype=torch.float32)
%output = output(values=[%d]))";
    const Algorithm algorithm = translate(tests::program_from(lines)).algorithm;
    FusionOptions all, none;
    all.mode = FusionMode::max;
    none.mode = FusionMode::none;
    CHECK(stages_of(partition_of(lines)) == "exp mul | dot");
    CHECK(stages_of(partition_for(algorithm, {}, file_of(partition_of(lines, all)))) == "exp mul dot");
    CHECK(stages_of(partition_for(algorithm, {}, file_of(partition_of(lines, none)))) == "exp | mul | dot");
    CHECK(stages_of(partition_for(algorithm, all, file_of(partition_of(lines)))) == "exp mul | dot");
}

TEST_CASE("a stage that is read at several neighbouring places is a place to cut") {
    const std::string lines = R"(%x : float32[64] = placeholder
%e : float32[64] = call_function prims.exp(a=%x)
%a : float32[60] = call_function prims.slice(a=%e, dim=0, start=0, end=60, step=1)
%b : float32[60] = call_function prims.slice(a=%e, dim=0, start=1, end=61, step=1)
%c : float32[60] = call_function prims.slice(a=%e, dim=0, start=2, end=62, step=1)
%d : float32[60] = call_function prims.slice(a=%e, dim=0, start=3, end=63, step=1)
%s : float32[60] = call_function prims.add(a=%a, b=%b)
%t : float32[60] = call_function prims.add(a=%s, b=%c)
%y : float32[60] = call_function prims.mul(a=%t, b=%d)
%output = output(values=[%y]))";
    const Partition whole = partition_of(lines);
    REQUIRE(whole.kernels.size() == 1);
    CHECK(cuts_worth_trying(whole.kernels[0]) == std::vector<std::vector<std::string>>{{"exp"}});
}

TEST_CASE("each edge is decided once, also in kernels that are taken apart") {
    const std::string lines = "%x : float32[8, 64] = placeholder\n%h : float32[8, 64] = call_function prims.sin(a=%x)\n" +
                              tests::softmax_lines("h", "y", 8, 64) + "%output = output(values=[%y])\n";
    const Partition whole = partition_of(lines);
    FusionOptions options;
    options.cuts[whole.kernels[0].hash] = cuts_worth_trying(whole.kernels[0]).front();
    std::set<std::pair<std::string, std::string>> edges;
    for (const FusionDecision &decision : partition_of(lines, options).decisions) {
        CHECK_MESSAGE(edges.emplace(decision.producer, decision.consumer).second, decision.producer, " -> ", decision.consumer);
    }
    const std::string summary = print_decisions_by_kernel(whole);
    CHECK(std::count(summary.begin(), summary.end(), '\n') < static_cast<std::ptrdiff_t>(whole.decisions.size()));
    CHECK_MESSAGE(summary.find(" more)") != std::string::npos, summary);
}

TEST_CASE("long columns are normalised apart, or in one kernel that reads them twice, and a file says which") {
    const std::string lines = R"(%x : float32[4096, 512] = placeholder
%s : float32[512] = call_function prims.sum(a=%x, dims=[0])
%b : float32[4096, 512] = call_function prims.broadcast_in_dim(a=%s, size=[4096, 512], dims=[1])
%y : float32[4096, 512] = call_function prims.div(a=%x, b=%b)
%output = output(values=[%y]))";
    FusionOptions rereads;
    rereads.rereads = true;
    CHECK(stages_of(partition_of(lines)) == "sum | div");
    CHECK(stages_of(partition_of(lines, rereads)) == "sum div");
    const Algorithm algorithm = translate(tests::program_from(lines)).algorithm;
    CHECK(stages_of(partition_for(algorithm, {}, file_of(partition_of(lines, rereads)))) == "sum div");
}
