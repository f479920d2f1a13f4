// Functions that compiled CPU kernels call by name: special functions, and the check of indices.
#pragma once

#include <cstdint>
#include <span>

namespace tilewright {

/// The plan's error flag: the first index out of range that a run met.
struct IndexStatus {
    std::int32_t site_plus_one = 0;  ///< 0: no error
    std::int32_t unused = 0;
    std::int64_t index = 0;
    std::int64_t size = 0;
};

struct RuntimeSymbol {
    const char *name;
    void *address;
};
/// What the loader offers to kernels besides libc, libm and Halide's runtime.
std::span<const RuntimeSymbol> runtime_symbols();

}  // namespace tilewright
