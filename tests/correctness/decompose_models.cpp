// Every shipped model decomposes into core operators, and its outputs keep the types and shapes that PyTorch recorded.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "dsl/capture/archive.h"
#include "lowering/decompose/decompose.h"

using namespace tilewright;

namespace {

std::vector<std::string> archives() {
    std::vector<std::string> paths;
    for (const auto &entry : std::filesystem::directory_iterator("apps/models")) {
        if (entry.path().extension() == ".pt2") {
            paths.push_back(entry.path().string());
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace

TEST_CASE("shipped models become core operators") {
    REQUIRE(archives().size() >= 10);
    for (const std::string &path : archives()) {
        CAPTURE(path);
        Program program = read_archive(path);
        functionalize(program);
        std::vector<TensorMeta> recorded;
        for (const Argument &value : program.graph.output_values()) {
            recorded.push_back(value.node()->tensor());
        }
        const std::size_t before = program.graph.nodes().size();
        decompose(program);
        verify(program.graph);
        for (const auto &node : program.graph.nodes()) {
            CHECK_MESSAGE((node->opcode != Opcode::call_function || is_core(node->target)), print(*node));
        }
        // An unrolled recurrent layer aside, an operator becomes a few.
        CHECK(program.graph.nodes().size() < before * (path.find("lstm") == std::string::npos ? 8 : 40));

        const ArgumentList &values = program.graph.output_values();
        REQUIRE(values.size() == recorded.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const TensorMeta &meta = values[i].node()->tensor();
            CHECK(meta.dtype == recorded[i].dtype);
            // PyTorch records a dimension too many for the states of an LSTM.
            if (meta.rank() == recorded[i].rank()) {
                CHECK(to_string(meta.sizes) == to_string(recorded[i].sizes));
                CHECK(program.outputs[i].meta == recorded[i]);
            } else {
                CHECK(path.find("lstm") != std::string::npos);
                CHECK(program.outputs[i].meta == meta);
            }
        }
    }
}

TEST_CASE("decomposing twice changes nothing") {
    Program program = read_archive("apps/models/bert.pt2");
    functionalize(program);
    decompose(program);
    const std::string once = print(program.graph);
    decompose(program);
    CHECK(print(program.graph) == once);
}
