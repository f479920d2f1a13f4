// The schedules that lie beside the shipped models (apps/bench/tune_cpu_models.sh writes them): each fits its model and gives the recorded
// outputs.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/support/command.h"

using tilewright::test::CommandResult;
using tilewright::test::run_tilewright;

namespace {

std::set<std::string> shipped_models() {
    std::set<std::string> stems;
    for (const auto &entry : std::filesystem::directory_iterator("apps/models")) {
        if (entry.path().extension() == ".pt2") {
            stems.insert(entry.path().parent_path() / entry.path().stem());
        }
    }
    return stems;
}

}  // namespace

TEST_CASE("every shipped model has a schedule that fits") {
    const std::set<std::string> stems = shipped_models();
    CHECK(stems.size() >= 11);
    for (const std::string &stem : stems) {
        const CommandResult check = run_tilewright({"check", stem + ".cpu.schedule", stem + ".pt2"});
        CHECK_MESSAGE(check.status == 0, check.output, check.errors,
                      "after a change of algorithms or groups run apps/bench/tune_cpu_models.sh");
    }
}

TEST_CASE("under their schedules models give the recorded outputs") {
    for (const char *name : {"lstm", "special", "unet"}) {
        const std::string stem = std::string("apps/models/") + name, recorded = stem + ".io.safetensors";
        const CommandResult run = run_tilewright(
            {"run", stem + ".pt2", "--target", "cpu", "--schedule", stem + ".cpu.schedule", "--inputs", recorded, "--check", recorded});
        CHECK_MESSAGE(run.status == 0, run.output, run.errors);
    }
}
