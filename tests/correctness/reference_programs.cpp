// ATen programs from archive to values by the reference evaluator: decomposition and translation against PyTorch, without a target.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

#include "dsl/error.h"
#include "tests/support/reference_program.h"

using namespace tilewright;

namespace {

std::vector<std::string> lines_of(const std::string &path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
    }
    return lines;
}

void check_families(const std::optional<FusionOptions> &options) {
    for (const auto &entry : std::filesystem::directory_iterator("tests/data/operators")) {
        if (entry.path().extension() != ".pt2") {
            continue;
        }
        std::string archive = entry.path().string(), family = archive.substr(0, archive.find('.'));
        CAPTURE(archive);
        std::vector<std::string> cases = lines_of(family + ".cases");
        std::vector<std::string> differences = tests::run_by_reference(archive, family + ".io.safetensors", 3e-5, options);
        REQUIRE(differences.size() == cases.size());
        for (std::size_t i = 0; i < differences.size(); i++) {
            // Of infinity eager's vectorised erf makes NaN, its scalar one does not.
            if (!cases[i].ends_with("gelu special")) {
                CAPTURE(cases[i]);
                CHECK(differences[i] == "");
            }
        }
    }
}

void check_models(const std::optional<FusionOptions> &options) {
    for (std::string model : {"bert", "clip_vision", "distilbert", "llama", "lstm", "qwen3", "special", "t5", "unet", "whisper_enc"}) {
        CAPTURE(model);
        std::string path = "apps/models/" + model;
        for (const std::string &difference : tests::run_by_reference(path + ".pt2", path + ".io.safetensors", 2e-5, options)) {
            CHECK(difference == "");
        }
    }
}

TEST_CASE("families of operators") { check_families({}); }
TEST_CASE("families of operators, partitioned") {
    check_families(FusionOptions{});
    FusionOptions most;
    most.mode = FusionMode::max;
    check_families(most);
}
TEST_CASE("shipped models") { check_models({}); }
TEST_CASE("shipped models, partitioned") {
    check_models(FusionOptions{});
    FusionOptions most;
    most.mode = FusionMode::max;
    check_models(most);
}

}  // namespace
