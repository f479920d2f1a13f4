// Default schedules with numbers and directives changed by chance: each is refused in words, or computes what the CPU target computes.
#include <doctest/doctest.h>

#include <random>

#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

constexpr const char *softmax =
    "%x : float32[3, 261] = placeholder\n%y : float32[3, 261] = call_function aten.softmax.int(self=%x, dim=-1)\n"
    "%output = output(values=[%y])";
constexpr const char *cumsum =
    "%x : float32[3, 200] = placeholder\n%y : float32[3, 200] = call_function aten.cumsum.default(self=%x, dim=-1)\n"
    "%output = output(values=[%y])";
constexpr const char *shares =
    "%x : float32[3, 200] = placeholder\n%c : float32[3, 200] = call_function aten.cumsum.default(self=%x, dim=-1)\n"
    "%s : float32[3, 1] = call_function aten.sum.dim_IntList(self=%c, dim=[-1], keepdim=true)\n"
    "%y : float32[3, 200] = call_function aten.div.Tensor(self=%c, other=%s)\n%output = output(values=[%y])";
constexpr const char *columns =
    "%x : float32[70, 40] = placeholder\n%y : float32[40] = call_function aten.sum.dim_IntList(self=%x, dim=[0])\n"
    "%output = output(values=[%y])";

/// Without one directive, or with one number changed.
Directives edited(Directives directives, std::mt19937 &random) {
    static const std::vector<std::int64_t> numbers{1, 2, 3, 4, 5, 8, 16, 32, 33, 48, 64, 100, 256, 1024, std::int64_t{1} << 31};
    Directive &chosen = directives[random() % directives.size()];
    for (DirectiveArgument &argument : chosen.arguments) {
        if (std::holds_alternative<std::int64_t>(argument)) {
            argument = numbers[random() % numbers.size()];
            return directives;
        }
    }
    directives.erase(directives.begin() + (&chosen - directives.data()));
    return directives;
}

/// How many of the edited schedules were refused; those that are not compute what they should.
int refused_of(const char *lines, int edits, std::mt19937 &random) {
    const Kernel kernel = kernels_from(lines).front();
    const std::vector<HostTensor> inputs = random_inputs(kernel, {}, 1), expected = run_on_cpu(kernel, {}, inputs, {});
    int refused = 0;
    for (int i = 0; i < edits; ++i) {
        const Directives directives = edited(default_cuda_schedule(kernel, gpu_facts("sm_90a")), random);
        CAPTURE(print(directives));
        try {
            const std::string difference = first_difference(run_emulated(kernel, directives, inputs), expected, 2e-5);
            CHECK(difference == "");
        } catch (const UserError &error) {
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
            ++refused;
        }
    }
    return refused;
}

}  // namespace

TEST_CASE("edited schedules are refused or right") {
    std::mt19937 random(3);
    for (const char *lines : {softmax, cumsum, shares, columns}) {
        CHECK(refused_of(lines, 6, random) < 6);
    }
}

TEST_CASE("a value that a serial loop inside an unrolled one overwrites is computed again") {
    const auto serial = [](const Kernel &kernel) -> std::optional<Directives> {
        ScheduleBuilder s;
        const std::string last = kernel.algorithm.outputs[0].stage;
        s[last].split("d1", "step", "inside", 96).unroll("step").gpu_blocks("d0");
        for (const Stage &stage : kernel.algorithm.stages) {
            if (stage.name() != last && stage.name() != "sub") {
                s[stage.name()].compute_at(last, "d0").store_in("register");
            }
        }
        return s.directives;
    };
    CHECK(check_scheduled(softmax, serial, gpu_facts("sm_90a"), 2e-5) == "");
}

TEST_CASE("threads that cannot scan together are refused") {
    const Kernel kernel = kernels_from(cumsum).front();
    ScheduleBuilder s;
    s["cumsum"].gpu_blocks("d0").split("d1", "step", "thread", 3).gpu_threads("thread");
    CHECK_THROWS_WITH_AS(lower_cuda(kernel, s.directives, gpu_facts("sm_90a")),
                         doctest::Contains("2, 4, 8, 16 or a multiple of 32 threads"), UserError);
}
