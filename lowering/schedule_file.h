// The schedule file of a compilation: what `autotune` writes and `print --stage schedule` shows.
#pragma once

#include "dsl/schedule/schedule.h"
#include "lowering/pipeline.h"

namespace tilewright {

/// What the line 'fuses' of a kernel's entry says, and the line 'covers'.
std::vector<std::string> stages_of(const Kernel &kernel);
std::vector<std::string> places_of(const Partition &partition, std::size_t kernel);

/// Needs the steps up to PipelineStep::schedule. One entry for each kernel with the places that it covers.
ScheduleFile schedule_file_of(const Compilation &compilation);

/// Hash of the whole partitioned model: its kernels' algorithms in the order of their calls. 16 hexadecimal digits.
std::string partition_hash(const Partition &partition);

}  // namespace tilewright
