// Runs a plan: what the CPU and the GPU executor have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// A tensor in memory that the target addresses: host memory for the CPU, device memory for a GPU.
struct Tensor {
    DType dtype = DType::float32;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< elements
    std::byte *data = nullptr;          ///< of the element at index 0 in every dimension
    std::shared_ptr<void> storage;      ///< keeps `data` alive; empty where the caller does
};

/// A loaded plan: weights bound, code loaded. Several threads may run one executor at once.
class Executor {
public:
    virtual ~Executor() = default;

    /// One run. `inputs` are the program's user inputs that are tensors, in order; those that the program mutates are written in place.
    /// Outputs are new tensors with PyTorch's strides. `stream` is a CUstream (null: the executor's own; the call then returns when the
    /// outputs are ready); the CPU ignores it. UserError names the input whose count, dtype, rank, sizes or strides do not fit, and the
    /// site, index and size of an index out of range.
    virtual std::vector<Tensor> run(std::span<const Tensor> inputs, void *stream = nullptr) = 0;

    /// The same into outputs that the caller provides, with the sizes and strides that describe_outputs() (runtime/outputs.h) told; those
    /// that are an input or an earlier output are not looked at.
    virtual void run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, void *stream = nullptr);

    /// The same from and to host memory, on any target. A mutated input's new value comes back in `mutated`, where one is given, at the
    /// input's position; the inputs themselves are not written.
    virtual std::vector<HostTensor> run_host(std::span<const HostTensor> inputs, std::vector<HostTensor> *mutated = nullptr) = 0;

    /// Seconds that each of the plan's steps takes in a run, the least of `repeats`; 0 for those that ran at load. `explain` shows them.
    virtual std::vector<double> profile(std::span<const HostTensor> inputs, int repeats) = 0;

    virtual const Plan &plan() const = 0;
};

/// Loads the plan's code, binds its weights and computes once what depends on weights alone.
std::unique_ptr<Executor> make_cpu_executor(Plan plan);
std::unique_ptr<Executor> make_cuda_executor(Plan plan);

}  // namespace tilewright
