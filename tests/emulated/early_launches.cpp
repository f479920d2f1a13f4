// A launch may start while the one before it ends: every kernel waits for what comes before it, ahead of its first access.
#include <doctest/doctest.h>

#include "lowering/cuda/compile.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/pipeline.h"

using namespace tilewright;

namespace {

/// What the entry points of a program in PTX do, each from the brace that opens its body on.
std::vector<std::string> bodies(const std::string &ptx) {
    std::vector<std::string> result;
    for (std::size_t place = ptx.find(".entry"); place != std::string::npos; place = ptx.find(".entry", place + 1)) {
        const std::size_t begin = ptx.find("\n{", place);
        result.push_back(ptx.substr(begin, ptx.find("\n}", begin) - begin));
    }
    return result;
}

}  // namespace

// ld.global.nc says that nobody writes what it reads, so ptxas may move it in front of the wait: a scan over 61 tensors once read what the
// launch before had not written yet.
TEST_CASE("every kernel waits for the launches before it, then loads") {
    if (!have_cuda_compiler()) {
        return;
    }
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
                const Kernel &kernel = c.partition.kernels[k];
                const std::string source = lower_cuda(kernel, variant.directives, *c.target.gpu).source;
                for (const std::string &body : bodies(compile_to_ptx(kernel.name, source, options.architecture))) {
                    const std::size_t wait = body.find("griddepcontrol.wait");
                    REQUIRE_MESSAGE(wait != std::string::npos, kernel.name);
                    for (const char *access : {"ld.global", "st.global", "atom.global", "red.global", "cp.async"}) {
                        CHECK_MESSAGE(body.find(access) > wait, kernel.name, ": ", access);
                    }
                    CHECK_MESSAGE(body.find("ld.global.nc") == std::string::npos, kernel.name);
                    ++functions;
                }
            }
        }
    }
    CHECK(functions > 40);
}
