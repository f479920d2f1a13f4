// Convolutions and attention computed by cuDNN, opened while running.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/engine_workspace.h"
#include "runtime/plan.h"

namespace tilewright {

/// One graph for one binding of the symbols, its plan built.
class CudnnEngine {
public:
    /// UserError where cuDNN is missing or has no plan for it.
    CudnnEngine(const GraphEngineStep &step, const std::string &kernel, const SymbolValues &symbols);
    ~CudnnEngine();
    CudnnEngine(const CudnnEngine &) = delete;

    /// At most engine_workspace_bytes.
    std::int64_t workspace_bytes() const;
    /// Addresses of element 0 of each of the step's tensors.
    void enqueue(const std::vector<CUdeviceptr> &tensors, CUdeviceptr workspace, CUstream stream) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Whether cuDNN can be opened; the reason where it cannot.
bool have_cudnn(std::string *why_not = nullptr);
/// "9.19.0": for records, since another version may have other plans.
std::string cudnn_version();

}  // namespace tilewright
