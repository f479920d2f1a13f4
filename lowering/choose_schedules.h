// Gives each kernel of a partition its schedule: from a file, or the default one.
#pragma once

#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fixed_inputs.h"
#include "lowering/fusion/kernel.h"
#include "lowering/options.h"
#include "lowering/target.h"

namespace tilewright {

/// The schedule of a kernel that no file and no search has scheduled: by an engine only where that is there and the options allow it.
KernelSchedule default_schedule(const Kernel &kernel, const Target &target, const FixedInputs &fixed, const Options &options);

/// Which entry of a file schedules which kernel. Kernels of one algorithm and different sizes share a hash; each has its own entry then,
/// told apart by name.
struct MatchedEntries {
    std::vector<const KernelSchedule *> of_kernel;  ///< null where the file has none
    std::vector<const KernelSchedule *> stale;      ///< entries that schedule no kernel, in the file's order
};
MatchedEntries match_entries(const Partition &partition, const ScheduleFile &file);

/// One entry for each of the partition's kernels. `file` may be null. A kernel that the file leaves out runs under its default schedule,
/// and the log says so. UserError with file and line for an entry whose algorithm the model has not, and for another target.
std::vector<KernelSchedule> choose_schedules(const Partition &partition, const ScheduleFile *file, const Target &target,
                                             const std::vector<FixedInputs> &fixed, const Options &options);

/// Whether `options.engines` has this library.
bool allows_engine(const Options &options, const std::string &library);

/// UserError with the place of a directive that the options forbid: atomic() where runs shall give the same bits, an engine that is not
/// allowed.
void require_allowed(const std::vector<KernelSchedule> &schedules, const Options &options);

}  // namespace tilewright
