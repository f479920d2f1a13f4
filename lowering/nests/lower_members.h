// A member of a nest becomes pieces of work: a value, a reduction, a scan.
#pragma once

#include "dsl/algorithm/combiner.h"
#include "lowering/nests/nest_work.h"

namespace tilewright {

void lower_value(NestWork &work, const Member &member);
void lower_reduction(NestWork &work, const Member &member, const Fold &fold);
void lower_scan(NestWork &work, const Member &member, const Fold &fold);
/// A value that readers of other places need too: the block computes it once for all that it reads, into shared memory.
void lower_tile(NestWork &work, const Member &member);

}  // namespace tilewright
