// Runs and times one kernel's plans: what the measuring child does with a request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/plan_timer.h"

namespace tilewright {

/// As one line, and back. UserError for a line that is none.
std::string to_line(const TimingRequest &request);
TimingRequest parse_timing_request(const std::string &line);

/// Keeps the reference, its inputs and outputs from one request to the next.
class Measurer {
public:
    Measurer();
    ~Measurer();

    /// As PlanTimer::time().
    std::vector<std::vector<double>> time(const TimingRequest &request);

private:
    std::unique_ptr<PlanTimer> timer_;
};

}  // namespace tilewright
