// Shipped models through the whole GPU path, their emitted kernels run by the emulation, against the outputs that PyTorch recorded.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/command.h"

using tilewright::test::CommandResult;

TEST_CASE("recorded models on the emulated GPU") {
    const char *binaries = std::getenv("TILEWRIGHT_BINARY_DIR");
    setenv("LD_LIBRARY_PATH", (std::string(binaries != nullptr ? binaries : "build") + "/emulated_driver").c_str(), 1);
    for (const std::string model : {"lstm", "special", "distilbert", "unet", "t5"}) {
        const std::string stem = "apps/models/" + model;
        const CommandResult result =
            tilewright::test::run_tilewright({"run", stem + ".pt2", "--target", "cuda", "--engines", "none", "--inputs",
                                              stem + ".io.safetensors", "--check", stem + ".io.safetensors"});
        CHECK_MESSAGE(result.status == 0, model, ": ", result.output, result.errors);
        CHECK(result.output.starts_with("ok: "));
    }
}
