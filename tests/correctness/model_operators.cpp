// Every ATen operator that 51 real models have occurs in a recorded program: a case of operators, of mutations, or a shipped model.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "dsl/capture/archive.h"

using namespace tilewright;

namespace {

std::set<std::string> recorded_targets() {
    std::set<std::string> targets;
    for (const char *folder : {"tests/data/operators", "tests/data/mutations", "apps/models"}) {
        for (const auto &entry : std::filesystem::directory_iterator(folder)) {
            if (entry.path().extension() == ".pt2") {
                const Program program = read_archive(entry.path());
                for (const auto &node : program.graph.nodes()) {
                    targets.insert(node->target);
                }
            }
        }
    }
    return targets;
}

}  // namespace

TEST_CASE("operators of real models are recorded") {
    const std::set<std::string> recorded = recorded_targets();
    std::ifstream table("tests/data/model_operators.tsv");
    int operators = 0;
    for (std::string line; std::getline(table, line);) {
        const std::string target = line.substr(0, line.find('\t'));
        if (target.starts_with("aten.")) {
            CHECK_MESSAGE(recorded.contains(target), target);
            ++operators;
        }
    }
    CHECK(operators > 150);
}
