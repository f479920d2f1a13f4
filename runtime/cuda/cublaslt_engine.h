// Products computed by cuBLASLt, opened while running.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/engine_workspace.h"
#include "runtime/plan.h"

namespace tilewright {

/// One product for one binding of the symbols, its algorithm chosen.
class MatmulEngine {
public:
    /// UserError where cuBLASLt is missing or has no algorithm for it.
    MatmulEngine(const MatmulEngineStep &step, const std::string &kernel, const SymbolValues &symbols);
    ~MatmulEngine();
    MatmulEngine(const MatmulEngine &) = delete;

    /// How many algorithms the heuristics offer; `MatmulEngineStep::algorithm` counts them.
    int algorithms() const;
    /// Of the workspace, what the chosen algorithm uses.
    std::int64_t workspace_bytes() const;
    /// Addresses of element 0; `bias` may be 0.
    void enqueue(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr d, CUdeviceptr workspace, CUstream stream) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Whether cuBLASLt can be opened; the reason where it cannot.
bool have_cublaslt(std::string *why_not = nullptr);
/// "13.0.2": for records, since another version may offer other algorithms.
std::string cublaslt_version();

}  // namespace tilewright
