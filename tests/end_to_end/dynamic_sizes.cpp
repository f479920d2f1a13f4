// One load of a model with symbolic batch and sequence serves all their sizes, from several threads at once.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"

using namespace tilewright;

TEST_CASE("gpt2_dynamic at six sizes, two threads") {
    std::map<std::string, HostTensor> recorded;
    for (auto &[name, tensor] : read_safetensors("tests/data/gpt2_dynamic.safetensors")) {
        recorded.emplace(name, tensor);
    }
    Options options;
    options.target = "cpu";
    const Model model = Model::load("apps/models/gpt2_dynamic.pt2", options);
    const std::vector<std::string> sizes{"1x2", "2x17", "3x5", "5x33", "1x64", "16x8"};
    REQUIRE(recorded.size() == 2 * sizes.size());
    std::atomic<int> wrong = 0;
    const auto run_all = [&](std::size_t first) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::string &size = sizes[(first + i) % sizes.size()];
            const std::vector<HostTensor> outputs = model.run(std::vector{recorded.at(size + ".in0")});
            wrong += outputs.size() != 1 || compare(recorded.at(size + ".out0"), outputs[0]).mismatch ? 1 : 0;
        }
    };
    std::thread other(run_all, 3);
    run_all(0);
    other.join();
    CHECK(wrong == 0);
    for (const std::string &size : sizes) {
        const Comparison comparison = compare(recorded.at(size + ".out0"), model.run(std::vector{recorded.at(size + ".in0")})[0]);
        CHECK_MESSAGE(!comparison.mismatch, size, comparison.mismatch.value_or(""));
    }
}
