#include <algorithm>

#include "autotune/device_compare.h"
#include "autotune/draw_inputs.h"
#include "autotune/plan_timer.h"
#include "dsl/error.h"
#include "runtime/cuda_timer.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"
#include "runtime/outputs.h"

namespace tilewright {
namespace {

constexpr double warm_seconds = 0.005;   ///< of runs before those that count
constexpr double round_seconds = 0.15;   ///< after which a round adds no runs

/// Tensors in device memory of their own.
class DeviceTensors {
public:
    explicit DeviceTensors(CUstream stream) : stream_(stream) {}

    void upload(const HostTensor &values) {
        add(to_tensor(values));
        if (const std::int64_t bytes = memory_.back().bytes(); bytes > 0) {
            cuda_check(CudaDriver::get().copy_to_device(memory_.back().address(), values.data(), static_cast<std::size_t>(bytes), stream_), "copying an input");
            cuda_check(CudaDriver::get().stream_synchronize(stream_), "copying an input");
        }
    }
    /// A drawn pattern, over and over: it is copied once and doubled in place.
    void draw(const TensorMeta &meta, std::int64_t bound, std::uint64_t seed) {
        add({meta.dtype, evaluate(meta.sizes, {}), evaluate(meta.strides, {}), nullptr, nullptr});
        const std::int64_t bytes = memory_.back().bytes();
        const DrawnPattern pattern = draw_pattern(meta.dtype, bytes / size_in_bytes(meta.dtype), bound, seed);
        const CUdeviceptr start = memory_.back().address();
        auto filled = static_cast<std::int64_t>(pattern.bytes.size());
        if (bytes == 0) {
            return;
        }
        cuda_check(CudaDriver::get().copy_to_device(start, pattern.bytes.data(), pattern.bytes.size(), stream_), "copying an input");
        for (; filled < bytes; filled *= 2) {
            const std::int64_t more = std::min(filled, bytes - filled);
            cuda_check(CudaDriver::get().copy_on_device(start + static_cast<CUdeviceptr>(filled), start, static_cast<std::size_t>(more), stream_),
                       "repeating drawn values");
        }
        cuda_check(CudaDriver::get().stream_synchronize(stream_), "drawing an input");
    }
    /// Filled with NaN (all bits set), so that what is not written is seen.
    void clear(const OutputPlace &place) {
        add({place.dtype, place.sizes, place.strides, nullptr, nullptr});
        if (const std::int64_t bytes = memory_.back().bytes(); bytes > 0) {
            cuda_check(CudaDriver::get().memset8(memory_.back().address(), 0xff, static_cast<std::size_t>(bytes), stream_), "clearing an output");
        }
    }
    const std::vector<Tensor> &tensors() const { return tensors_; }

private:
    void add(Tensor tensor) {
        memory_.emplace_back(span_bytes(tensor.dtype, tensor.sizes, tensor.strides));
        tensor.data = memory_.back().data();
        tensors_.push_back(std::move(tensor));
    }
    CUstream stream_;
    std::vector<DeviceMemory> memory_;
    std::vector<Tensor> tensors_;
};

/// A plan that was run once, with its outputs.
class LoadedPlan {
public:
    LoadedPlan(Plan plan, const DeviceTensors &inputs, CUstream stream)
        : executor_(make_cuda_executor(std::move(plan))), inputs_(inputs), outputs_(stream) {
        for (const OutputPlace &output : describe_outputs(executor_->plan(), inputs_.tensors())) {
            outputs_.clear(output);
        }
        cuda_check(CudaDriver::get().stream_synchronize(stream), "clearing outputs");
        executor_->run_into(inputs_.tensors(), outputs_.tensors(), nullptr);
    }
    void enqueue(CUstream stream) { executor_->run_into(inputs_.tensors(), outputs_.tensors(), stream); }
    const std::vector<Tensor> &outputs() const { return outputs_.tensors(); }

private:
    std::unique_ptr<Executor> executor_;
    const DeviceTensors &inputs_;
    DeviceTensors outputs_;
};

class CudaPlanTimer final : public PlanTimer {
public:
    CudaPlanTimer(Plan plan, const TimingRequest &request) : PlanTimer(request.reference), plan_(plan) {
        make_inputs(request);
        reference_ = std::make_unique<LoadedPlan>(std::move(plan), *inputs_, stream_.get());
    }

    std::vector<std::vector<double>> time(const TimingRequest &request) override {
        std::vector<std::unique_ptr<LoadedPlan>> loaded;
        std::vector<LoadedPlan *> all{reference_.get()};
        for (const std::string &path : request.candidates) {
            loaded.push_back(std::make_unique<LoadedPlan>(read_plan(path), *inputs_, stream_.get()));
            check(*loaded.back(), request);
            all.push_back(loaded.back().get());
        }
        std::vector<Enqueue> enqueue;
        for (LoadedPlan *plan : all) {
            enqueue.emplace_back([plan](CUstream stream) { plan->enqueue(stream); });
        }
        std::vector<std::vector<double>> seconds(all.size());
        for (int round = 0; round < request.rounds; ++round) {
            const std::vector<double> medians = timer_.time(enqueue, {.warm_seconds = warm_seconds, .limit_seconds = round_seconds});
            for (std::size_t c = 0; c < all.size(); ++c) {
                seconds[c].push_back(1e-6 * medians[c]);
            }
        }
        return seconds;
    }

private:
    void make_inputs(const TimingRequest &request) {
        inputs_ = std::make_unique<DeviceTensors>(stream_.get());
        for (std::size_t i = 0; i < plan_.user_inputs.size(); ++i) {
            if (const std::optional<HostTensor> given = given_input(plan_, request, i)) {
                inputs_->upload(*given);
            } else {
                inputs_->draw(plan_.buffers[plan_.user_inputs[i]].meta, drawn_bound(request, i), i);
            }
        }
    }

    void check(const LoadedPlan &candidate, const TimingRequest &request) {
        for (std::size_t i = 0; i < reference_->outputs().size(); ++i) {
            if (const auto mismatch = compare_.mismatch(reference_->outputs()[i], candidate.outputs().at(i), stream_.get())) {
                // Who writes wrong outputs may have written to the inputs as well.
                reference_.reset();
                make_inputs(request);
                reference_ = std::make_unique<LoadedPlan>(plan_, *inputs_, stream_.get());
                user_error("output {} differs from the default schedule's at {}", i, *mismatch);
            }
        }
    }

    Plan plan_;
    CudaStream stream_;
    CudaTimer timer_;
    DeviceCompare compare_;
    std::unique_ptr<DeviceTensors> inputs_;
    std::unique_ptr<LoadedPlan> reference_;
};

}  // namespace

std::unique_ptr<PlanTimer> make_cuda_plan_timer(Plan reference, const TimingRequest &request) {
    return std::make_unique<CudaPlanTimer>(std::move(reference), request);
}

}  // namespace tilewright
