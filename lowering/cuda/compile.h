// CUDA C++ to cubin by NVRTC, with what ptxas reports of registers, spills and memory. Needs no GPU; NVRTC is opened when first used.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace tilewright {

struct CudaCompileOptions {
    bool contract = false;   ///< let the compiler join a product and a sum into one rounding; kernels ask for tw::fma where they want it
    int max_registers = 0;   ///< a thread; 0: as the kernel's launch bounds say
    bool line_info = false;  ///< for profilers
};

/// What ptxas reports of one kernel. Bytes, but for registers (a thread).
struct FunctionResources {
    std::string function;
    int registers = 0, spill_stores = 0, spill_loads = 0, shared_bytes = 0, stack_bytes = 0;
    friend bool operator==(const FunctionResources &, const FunctionResources &) = default;
};

struct CompiledCuda {
    CodeObject code;  ///< its resources are the largest of any function
    std::vector<FunctionResources> functions;
    bool from_cache = false;
};

/// Compiles one source, which may include "tilewright_device.h", for an architecture such as "sm_90a". Results are kept on disk under
/// source, options, architecture and compiler; safe from several threads and processes. InternalError with the compiler's first
/// message where emitted code does not compile; UserError where there is no NVRTC.
CompiledCuda compile_cuda(const std::string &name, const std::string &source, const std::string &architecture,
                          const CudaCompileOptions &options = {});

/// The same source as PTX, which says what the program asks of the machine before ptxas places it in registers. Kept nowhere.
std::string compile_to_ptx(const std::string &name, const std::string &source, const std::string &architecture);

/// Compiles what is not in the cache in another process, which leaves it there; false where it did not. Null: in this process.
using CudaCompilerElsewhere = std::function<bool(const std::string &name, const std::string &source, const std::string &architecture)>;
/// From now on compile_cuda() asks it first. Not to be called while something compiles.
void compile_cuda_elsewhere(CudaCompilerElsewhere compiler);

/// The architecture under which nothing is compiled: the image is the source, for the emulated driver (tests/emulated_driver).
inline constexpr const char *emulated_architecture = "host";

/// Whether NVRTC is here; the reason where it is not.
bool have_cuda_compiler(std::string *why_not = nullptr);
/// "NVRTC 13.0 (path)"
std::string cuda_compiler_version();

/// Reads ptxas' verbose report.
std::vector<FunctionResources> parse_ptxas_report(const std::string &log);

}  // namespace tilewright
