// One load of a model with symbolic batch and sequence serves all their sizes on the emulated GPU, from two threads.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"
#include "tests/support/gpu.h"

using namespace tilewright;

TEST_CASE("gpt2_dynamic at four sizes on the emulated GPU") {
    use_test_gpu();
    std::map<std::string, HostTensor> recorded;
    for (auto &[name, tensor] : read_safetensors("tests/data/gpt2_dynamic.safetensors")) {
        recorded.emplace(name, tensor);
    }
    Options options;
    options.target = "cuda";
    const Model model = Model::load("apps/models/gpt2_dynamic.pt2", options);
    const std::vector<std::string> sizes{"1x2", "2x17", "3x5", "16x8"};
    std::vector<std::vector<std::string>> wrong(2);
    const auto run_all = [&](int thread) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::string &size = sizes[(i + 2 * thread) % sizes.size()];
            const std::vector<HostTensor> outputs = model.run(std::vector{recorded.at(size + ".in0")});
            if (const auto mismatch = compare(recorded.at(size + ".out0"), outputs.at(0)).mismatch) {
                wrong[thread].push_back(size + ": " + *mismatch);
            }
        }
    };
    std::thread other(run_all, 1);
    run_all(0);
    other.join();
    for (const auto &each : wrong) {
        for (const std::string &mismatch : each) {
            FAIL_CHECK(mismatch);
        }
    }
}
