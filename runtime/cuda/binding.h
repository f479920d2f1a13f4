// A plan on the GPU for one binding of its symbols: shapes, places in the arena, launches ready to be submitted.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <variant>
#include <vector>

#include "runtime/cuda/cublaslt_engine.h"
#include "runtime/cuda/cudnn_engine.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/memory_plan.h"

namespace tilewright {

/// What a raised error flag holds; the kernels' tw::status.
struct CudaIndexStatus {
    std::int32_t site_plus_one = 0, unused = 0;
    std::int64_t index = 0, size = 0;
};

class CudaBinding {
public:
    /// `fixed` are the addresses of weights and of what was computed at load, 0 for other buffers.
    CudaBinding(const Plan &plan, const std::vector<CudaModule> &code, SymbolValues symbols, const ConstantSteps &constant,
                const std::vector<CUdeviceptr> &fixed);
    CudaBinding(const CudaBinding &) = delete;

    const SymbolValues &symbols() const { return symbols_; }
    const std::vector<std::int64_t> &sizes(int buffer) const { return sizes_[buffer]; }
    const std::vector<std::int64_t> &strides(int buffer) const { return strides_[buffer]; }
    /// Of the arena, with room for outputs that only write-backs read, and for write-backs that must be taken aside.
    std::int64_t arena_bytes() const { return arena_bytes_; }
    std::int64_t engine_workspace() const { return engine_workspace_; }  ///< bytes that calls of libraries want
    int submissions() const { return submissions_; }

    void place_arena(CUdeviceptr arena, CUdeviceptr workspace);
    CUdeviceptr address(int buffer) const { return addresses_[buffer]; }
    void set_address(int buffer, CUdeviceptr address) { addresses_[buffer] = address; }

    /// Submits the steps whose mark in `constant` equals `which`. `status`: one CudaIndexStatus a step.
    void enqueue_steps(const std::vector<bool> &constant, bool which, CUdeviceptr status, CUstream stream);
    /// Submits one step; nothing where it does not run for these symbols.
    void enqueue_step(int step, CUdeviceptr status, CUstream stream);
    bool runs(int step) const { return steps_[step].launch || steps_[step].matmul || steps_[step].graph; }
    /// Submits what brings new values to mutated inputs and weights.
    void enqueue_write_backs(CUstream stream);

private:
    struct Zeroed {
        std::size_t scratch = 0;
        std::int64_t bytes = 0;
    };
    struct BoundStep {
        std::unique_ptr<CudaLaunch> launch;
        std::unique_ptr<MatmulEngine> matmul;
        std::unique_ptr<CudnnEngine> graph;
        std::vector<Zeroed> zeroed;
    };
    struct WriteBack {
        int target = 0, value = 0;
        std::int64_t aside = -1;  ///< where in the arena the value is kept meanwhile; -1: it need not be
    };
    void bind_step(const std::vector<CudaModule> &code, int step);
    void plan_unnamed_outputs();
    void plan_write_backs();
    std::int64_t add_to_arena(int like_buffer);

    const Plan &plan_;
    SymbolValues symbols_;
    std::vector<std::vector<std::int64_t>> sizes_, strides_;
    MemoryLayout layout_;
    std::vector<CUdeviceptr> addresses_;
    std::vector<std::vector<CUdeviceptr>> scratch_;  ///< of each step
    std::vector<BoundStep> steps_;
    std::vector<int> calls_;                      ///< of kernels, by step
    std::set<std::pair<int, int>> scratch_seen_;  ///< call and slot: zeroed before the first step that names it
    std::vector<WriteBack> write_backs_;
    std::int64_t arena_bytes_ = 0;
    CUdeviceptr arena_ = 0, workspace_ = 0;
    std::int64_t engine_workspace_ = 0;
    int submissions_ = 0;
};

}  // namespace tilewright
