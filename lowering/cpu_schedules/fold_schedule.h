// The loop nests of reductions and scans: vectors along the reduced axis, or along an axis of the value.
#pragma once

#include "lowering/cpu_schedules/schedule_draft.h"

namespace tilewright {

void schedule_fold(CpuScheduleDraft &draft, const KeptStage &kept);
void schedule_scan(CpuScheduleDraft &draft, const KeptStage &kept);

}  // namespace tilewright
