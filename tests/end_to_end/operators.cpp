// Every recorded case of every operator, exported by PyTorch and compiled for the CPU, gives PyTorch's value.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "autotune/compare.h"
#include "apps/api/tilewright.h"

using namespace tilewright;

namespace {

const std::string folder = "tests/data/operators/";

std::vector<std::string> families() {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".cases") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// "argmax ties" for "out3".
std::map<std::string, std::string> case_names(const std::string &family) {
    std::map<std::string, std::string> names;
    std::ifstream file(folder + family + ".cases");
    for (std::string output, name; file >> output && std::getline(file, name);) {
        names[output] = name;
    }
    return names;
}

void check_program(const std::string &family, const std::string &archive) {
    Options options;
    options.target = "cpu";
    const Model model = Model::load(archive, options);
    std::map<std::string, HostTensor> recorded;
    for (auto &[name, tensor] : read_safetensors(folder + family + ".io.safetensors")) {
        recorded.emplace(name, tensor);
    }
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < model.plan().user_inputs.size(); ++i) {
        inputs.push_back(recorded.at("in" + std::to_string(i)));
    }
    const std::vector<HostTensor> outputs = model.run(inputs);
    std::map<std::string, std::string> names = case_names(family);
    CHECK(outputs.size() == names.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::string output = "out" + std::to_string(i);
        const Comparison comparison = compare(recorded.at(output), outputs[i]);
        CHECK_MESSAGE(!comparison.mismatch, archive, " ", output, names[output], comparison.mismatch.value_or(""));
    }
}

}  // namespace

TEST_CASE("recorded operators") {
    const std::vector<std::string> names = families();
    REQUIRE(!names.empty());
    for (const std::string &family : names) {
        check_program(family, folder + family + ".pt2");
    }
}

TEST_CASE("recorded operators after run_decompositions") {
    for (const std::string &family : families()) {
        if (std::filesystem::exists(folder + family + ".core.pt2")) {
            check_program(family, folder + family + ".core.pt2");
        }
    }
}
