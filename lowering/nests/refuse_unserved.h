// Refuses directives that a schedule gives to stages of a kind that does not understand them.
#pragma once

#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// Directives that only products on the matrix unit understand, or that no nest does: nothing that was asked for is left out silently.
void refuse_unserved(const ScheduledKernel &schedule);

}  // namespace tilewright
