// Tensors of callers that begin where wide accesses may not: kernels work on aligned copies of them.
#pragma once

#include <map>
#include <vector>

#include "runtime/cuda/binding.h"
#include "runtime/cuda/memory.h"
#include "runtime/plan.h"

namespace tilewright {

class AlignedCopies {
public:
    /// Replaces the addresses of user inputs and outputs that begin within a 16-byte word by those of copies, which the stream fills first.
    void enter(const Plan &plan, const CudaBinding &binding, std::vector<CUdeviceptr> &addresses, CUstream stream);
    /// After the run: what kernels may have written goes back to where the caller wanted it.
    void leave(const Plan &plan, const CudaBinding &binding, CUstream stream);
    bool owns_memory() const { return !copies_.empty(); }

private:
    struct Copy {
        DeviceMemory memory;
        CUdeviceptr place = 0, original = 0;  ///< `original` is 0 where this run needs no copy
        bool is_written = false;
    };
    std::map<int, Copy> copies_;  ///< by buffer
};

}  // namespace tilewright
