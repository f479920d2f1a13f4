// ATen programs from archive to values by the reference evaluator: decomposition and translation against PyTorch, without a target.
#include <doctest/doctest.h>

#include "dsl/error.h"
#include "tests/support/reference_program.h"

using namespace tilewright;

namespace {

TEST_CASE("shipped models") {
    for (std::string model : {"bert", "clip_vision", "distilbert", "llama", "lstm", "qwen3", "special", "t5", "unet", "whisper_enc"}) {
        CAPTURE(model);
        std::string path = "apps/models/" + model;
        for (const std::string &difference : tests::run_by_reference(path + ".pt2", path + ".io.safetensors", 2e-5)) {
            CHECK(difference == "");
        }
    }
}

}  // namespace
