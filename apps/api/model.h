// A model from a torch.export archive, compiled and ready to run from several threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/api/options.h"
#include "autotune/inputs/draw_inputs.h"
#include "dsl/graph/tensor.h"
#include "runtime/executor.h"

namespace tilewright {

/// A loaded model. Copies share it.
class Model {
public:
    /// Reads `MODEL.pt2` and compiles it under `options.schedule`, or under default schedules; what was compiled before comes from the
    /// cache. UserError names what is wrong with the archive, the schedule or the target.
    static Model load(const std::string &archive, const Options &options = {});

    /// One run on tensors in host memory, in the order of the model's signature; safe from several threads at once. Inputs that the
    /// model mutates are not written; see Executor::run_host.
    std::vector<HostTensor> run(std::span<const HostTensor> inputs) const { return executor_->run_host(inputs); }

    Executor &executor() const { return *executor_; }
    const Plan &plan() const { return executor_->plan(); }
    bool from_cache() const { return from_cache_; }

private:
    std::shared_ptr<Executor> executor_;
    bool from_cache_ = false;
};

}  // namespace tilewright
