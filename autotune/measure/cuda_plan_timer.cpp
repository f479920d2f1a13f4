#include "autotune/inputs/device_compare.h"
#include "autotune/inputs/device_tensors.h"
#include "autotune/measure/plan_timer.h"
#include "dsl/error.h"
#include "runtime/cuda/timer.h"
#include "runtime/outputs.h"

namespace tilewright {
namespace {

constexpr double warm_seconds = 0.005;  ///< of runs before those that count
constexpr double round_seconds = 0.15;  ///< after which a round adds no runs

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
