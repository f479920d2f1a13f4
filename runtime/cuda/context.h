// What runs on one stream share: arena, error flags, bindings of the symbols and recorded graphs.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/alignment.h"
#include "runtime/cuda/binding.h"
#include "runtime/plan.h"

namespace tilewright {

/// The addresses of a run's inputs and outputs, by the plan's buffers; 0 for other buffers.
using CudaAddresses = std::vector<CUdeviceptr>;

/// Runs of one context follow each other on one stream, so they use the same memory.
class CudaContext {
public:
    explicit CudaContext(const Plan &plan);

    /// The binding for these symbols, its arena placed. May allocate, and waits for `stream` where a larger arena replaces one in use.
    CudaBinding &bind(const std::vector<CudaModule> &code, const SymbolValues &symbols, const ConstantSteps &constant,
                      const std::vector<CUdeviceptr> &fixed, CUstream stream);

    /// Submits a run; as one recorded graph when the same addresses come again and `may_record`.
    void submit(CudaBinding &binding, const CudaAddresses &addresses, const std::vector<bool> &constant, CUstream stream, bool may_record);

    /// Throws a UserError for an index that an earlier, finished run found out of range, and clears the flags.
    void check_status();

    CUdeviceptr status_address() const { return status_address_; }
    const CudaStream &own_stream();  ///< for recording, and for runs that bring no stream
    std::mutex &mutex() { return mutex_; }
    /// Whether what it has enqueued works in memory of its own.
    bool owns_memory() const { return arena_.bytes() > 0 || workspace_.address() != 0 || aligned_copies_.owns_memory(); }
    AlignedCopies &aligned_copies() { return aligned_copies_; }

private:
    struct Recorded {
        const CudaBinding *binding;
        CudaAddresses addresses;
        int uses = 0;
        std::unique_ptr<CudaGraph> graph = {};
    };
    void enqueue(CudaBinding &binding, const CudaAddresses &addresses, const std::vector<bool> &constant, CUstream stream);

    const Plan &plan_;
    std::mutex mutex_;
    DeviceMemory arena_, workspace_;
    PinnedMemory status_;
    CUdeviceptr status_address_ = 0;
    std::unique_ptr<CudaStream> own_stream_;
    std::list<std::unique_ptr<CudaBinding>> bindings_;  ///< most recently used first
    AlignedCopies aligned_copies_;
    std::list<Recorded> recorded_;  ///< likewise
};

}  // namespace tilewright
