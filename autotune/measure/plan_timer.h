// Times plans of one kernel against a reference, whose outputs theirs must equal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/tensor.h"
#include "runtime/plan.h"

namespace tilewright {

/// Paths of plans of one kernel, and where the values of its inputs come from.
struct TimingRequest {
    int rounds = 1;
    std::string reference;            ///< its outputs are what those of the candidates are compared with
    std::string values;               ///< a safetensors file, or empty
    std::vector<std::string> inputs;  ///< for each: how many values an integer may have, "1024", or the name of a tensor in `values`
    std::vector<std::string> candidates;
};

/// One kernel's reference, loaded on one kind of machine.
class PlanTimer {
public:
    virtual ~PlanTimer() = default;
    /// Seconds by round of the reference and then of each candidate; in a round all run in turn. UserError for a candidate that fails or
    /// whose outputs differ from the reference's.
    virtual std::vector<std::vector<double>> time(const TimingRequest &request) = 0;
    const std::string &reference() const { return reference_; }

protected:
    explicit PlanTimer(std::string reference) : reference_(std::move(reference)) {}

private:
    std::string reference_;
};
std::unique_ptr<PlanTimer> make_cpu_plan_timer(Plan reference, const TimingRequest &request);
std::unique_ptr<PlanTimer> make_cuda_plan_timer(Plan reference, const TimingRequest &request);

Plan read_plan(const std::string &path);

/// Where input `index` of a plan with constant sizes takes its values from: a tensor of the request's file that has its type and size.
std::optional<HostTensor> given_input(const Plan &plan, const TimingRequest &request, std::size_t index);
/// How many values drawn integers of it may have.
std::int64_t drawn_bound(const TimingRequest &request, std::size_t index);

}  // namespace tilewright
