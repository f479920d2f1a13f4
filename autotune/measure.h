// Measures compiled candidates of one kernel in a child process: one that faults or hangs costs itself and nothing else.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/records.h"
#include "runtime/plan.h"

namespace tilewright {

struct MeasureOptions {
    std::map<std::string, std::int64_t> sizes;  ///< of symbols
    double timeout = 20;                        ///< seconds that one candidate may take
    std::string folder;                         ///< for plans on their way to the child
};

/// The first plan is the reference: every other must give its outputs before its time counts. The fastest are measured again in turns.
/// One outcome for each plan.
std::vector<TuningRecord> measure(const std::vector<Plan> &plans, const MeasureOptions &options);

/// The child: `tilewright measure-plans SIZES FIRST PLAN…`. Prints a line for each plan from number FIRST on.
int measure_plans(const std::vector<std::string> &arguments);

/// The child's name among the command's arguments.
inline constexpr const char *measure_command = "measure-plans";

}  // namespace tilewright
