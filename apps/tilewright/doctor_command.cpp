#include <Halide.h>
#include <fmt/format.h>
#include <thread>

#include "apps/tilewright/command.h"
#include "lowering/cpu/compile.h"
#include "lowering/cuda/compile.h"
#include "runtime/cuda/cublaslt_engine.h"
#include "runtime/cuda/cudnn_engine.h"
#include "runtime/cuda/driver.h"
#include "runtime/digest.h"
#include "runtime/plan_cache.h"

namespace tilewright {
namespace {

void report(const char *what, const std::string &value) { fmt::print("  {:<14} {}\n", what, value); }

}  // namespace

std::string version_line() { return fmt::format("tilewright {}, build {}", TILEWRIGHT_VERSION, build_id().substr(0, 12)); }

int doctor_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    if (!line.parse(arguments)) {
        return success;
    }
    fmt::print("{}\n", version_line());
    report("CPU", fmt::format("{} threads, {}", std::thread::hardware_concurrency(), cpu_features()));
    report("Halide", fmt::format("{}.{}.{}", HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH));
    std::string why_not;
    if (have_cuda_device(&why_not)) {
        const CudaDevice &gpu = cuda_device();
        report("GPU", fmt::format("{}, {}, {} multiprocessors, {} GiB, driver {}.{}", gpu.name, gpu.architecture, gpu.multiprocessors,
                                  gpu.memory_bytes >> 30, gpu.driver_version / 1000, gpu.driver_version % 1000 / 10));
    } else {
        report("GPU", "none: " + why_not + "; models run on the CPU, kernels for GPUs can be compiled but not timed");
    }
    report("CUDA compiler", have_cuda_compiler(&why_not) ? cuda_compiler_version() : "none: " + why_not);
    report("cuBLASLt", have_cublaslt(&why_not) ? cublaslt_version() : "none: " + why_not);
    report("cuDNN", have_cudnn(&why_not) ? cudnn_version() : "none: " + why_not);
    const std::string cache = PlanCache::standard().folder();
    report("cache", cache.empty() ? "none: neither XDG_CACHE_HOME nor HOME is set" : cache);
    return success;
}

}  // namespace tilewright
