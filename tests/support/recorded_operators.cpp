#include "tests/support/recorded_operators.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"

namespace tilewright::tests {

namespace {

const std::string folder = "tests/data/operators/";

/// "argmax ties" for "out3".
std::map<std::string, std::string> case_names(const std::string &family) {
    std::map<std::string, std::string> names;
    std::ifstream file(folder + family + ".cases");
    for (std::string output, name; file >> output && std::getline(file, name);) {
        names[output] = name;
    }
    return names;
}

}  // namespace

std::vector<std::string> operator_families() {
    if (const char *family = std::getenv("TILEWRIGHT_TEST_OPERATORS")) {
        return {family};
    }
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".cases") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

void check_recorded_operators(const std::string &family, const std::string &archive, const std::string &target) {
    Options options;
    options.target = target;
    options.engines = "none";
    const Model model = Model::load(folder + archive, options);
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

}  // namespace tilewright::tests
