// Every shipped model gives its recorded outputs on the CPU, compiled under default schedules.
#include <doctest/doctest.h>

#include "tests/support/command.h"

using tilewright::test::CommandResult;

TEST_CASE("recorded models") {
    for (const std::string model :
         {"bert", "clip_vision", "distilbert", "llama", "lstm", "qwen3", "special", "t5", "unet", "whisper_enc"}) {
        const std::string stem = "apps/models/" + model;
        const CommandResult result = tilewright::test::run_tilewright(
            {"run", stem + ".pt2", "--target", "cpu", "--inputs", stem + ".io.safetensors", "--check", stem + ".io.safetensors"});
        CHECK_MESSAGE(result.status == 0, model, ": ", result.output, result.errors);
        CHECK(result.output.starts_with("ok: "));
        CHECK(result.errors == "");
    }
}
