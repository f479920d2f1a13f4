// A launch may start while the one before it ends: every kernel waits for what comes before it, ahead of its first access.
#include <doctest/doctest.h>

#include <regex>

#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/pipeline.h"

using namespace tilewright;

/// Names of the parameters that the launch only reads, in the order of their declaration.
static std::string read_only(const std::string &parameters) {
    static const std::regex declaration("tw::in<[^>]*> (\\w+)");
    std::string names;
    for (std::sregex_iterator one(parameters.begin(), parameters.end(), declaration), end; one != end; ++one) {
        names += (names.empty() ? "" : ", ") + (*one)[1].str();
    }
    return names;
}

// A load that does not depend on the wait may be moved in front of it: a scan over 61 tensors once read what the launch before had not
// written yet.
TEST_CASE("every kernel begins by waiting for the launches before it, and its loads follow") {
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
                for (std::size_t place = source.find("__global__"); place != std::string::npos;
                     place = source.find("__global__", place + 1)) {
                    const std::size_t body = source.find(") {\n", place) + 4;
                    const std::string begin = "    tw::begin_launch(" + read_only(source.substr(place, body - place)) + ");\n";
                    CHECK_MESSAGE(source.compare(body, begin.size(), begin) == 0, c.partition.kernels[k].name);
                    ++functions;
                }
            }
        }
    }
    CHECK(functions > 40);
}
