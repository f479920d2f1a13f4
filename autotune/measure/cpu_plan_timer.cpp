#include <algorithm>

#include "autotune/inputs/compare.h"
#include "autotune/inputs/draw_inputs.h"
#include "autotune/measure/plan_timer.h"
#include "dsl/error.h"
#include "runtime/executor.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

constexpr double round_seconds = 0.02;  ///< of runs that one time is the least of
constexpr int most_repeats = 100;

class LoadedPlan {
public:
    LoadedPlan(Plan plan, const std::vector<HostTensor> &inputs) : executor_(make_cpu_executor(std::move(plan))), inputs_(inputs) {}
    std::vector<HostTensor> outputs() { return executor_->run_host(inputs_); }
    double time() {
        if (repeats_ == 0) {
            const double once = run(1);
            repeats_ = static_cast<int>(std::clamp(round_seconds / std::max(once, 1e-9), 1.0, static_cast<double>(most_repeats)));
        }
        return run(repeats_);
    }

private:
    double run(int repeats) {
        double seconds = 0;
        for (const double step : executor_->profile(inputs_, repeats)) {
            seconds += step;
        }
        return seconds;
    }
    std::unique_ptr<Executor> executor_;
    const std::vector<HostTensor> &inputs_;
    int repeats_ = 0;
};

class CpuPlanTimer final : public PlanTimer {
public:
    CpuPlanTimer(Plan plan, const TimingRequest &request) : PlanTimer(request.reference) {
        for (std::size_t i = 0; i < plan.user_inputs.size(); ++i) {
            const TensorMeta &meta = plan.buffers[plan.user_inputs[i]].meta;
            const std::optional<HostTensor> given = given_input(plan, request, i);
            inputs_.push_back(
                given ? *given : draw_tensor(meta.dtype, evaluate(meta.sizes, {}), evaluate(meta.strides, {}), drawn_bound(request, i), i));
        }
        plan_ = std::make_unique<LoadedPlan>(std::move(plan), inputs_);
        expected_ = plan_->outputs();
    }

    std::vector<std::vector<double>> time(const TimingRequest &request) override {
        std::vector<std::unique_ptr<LoadedPlan>> loaded;
        std::vector<LoadedPlan *> all{plan_.get()};
        for (const std::string &path : request.candidates) {
            loaded.push_back(std::make_unique<LoadedPlan>(read_plan(path), inputs_));
            check(*loaded.back());
            all.push_back(loaded.back().get());
        }
        std::vector<std::vector<double>> seconds(all.size());
        for (int round = 0; round < request.rounds; ++round) {
            for (std::size_t c = 0; c < all.size(); ++c) {
                seconds[c].push_back(all[c]->time());
            }
        }
        return seconds;
    }

private:
    void check(LoadedPlan &candidate) {
        const std::vector<HostTensor> outputs = candidate.outputs();
        for (std::size_t i = 0; i < expected_.size(); ++i) {
            if (const Comparison comparison = compare(expected_[i], outputs.at(i)); comparison.mismatch) {
                user_error("output {} differs from the default schedule's at {}", i, *comparison.mismatch);
            }
        }
    }

    std::vector<HostTensor> inputs_, expected_;
    std::unique_ptr<LoadedPlan> plan_;
};

}  // namespace

std::unique_ptr<PlanTimer> make_cpu_plan_timer(Plan reference, const TimingRequest &request) {
    return std::make_unique<CpuPlanTimer>(std::move(reference), request);
}

}  // namespace tilewright
