// A launch may start while the one before it ends: every kernel waits for what comes before it, ahead of its first access.
#include <doctest/doctest.h>

#include "lowering/cuda/lower.h"
#include "lowering/cuda/engine.h"
#include "lowering/pipeline.h"

using namespace tilewright;

TEST_CASE("every kernel begins by waiting for the launches before it") {
    Options options;
    options.target = "cuda";
    options.architecture = "sm_90a";
    int functions = 0;
    for (const std::string model : {"bert", "lstm", "special", "unet"}) {
        const Compilation c = compile_archive("apps/models/" + model + ".pt2", options, PipelineStep::schedule);
        for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
            for (const ScheduleVariant &variant : c.schedules[k].variants) {
                if (find_engine(variant.directives)) {
                    continue;
                }
                const std::string source = lower_cuda(c.partition.kernels[k], variant.directives, *c.target.gpu).source;
                for (std::size_t place = source.find("__global__"); place != std::string::npos; place = source.find("__global__", place + 1)) {
                    const std::size_t body = source.find(") {\n", place) + 4;
                    CHECK_MESSAGE(source.compare(body, 24, "    tw::begin_launch();\n") == 0, c.partition.kernels[k].name);
                    ++functions;
                }
            }
        }
    }
    CHECK(functions > 40);
}
