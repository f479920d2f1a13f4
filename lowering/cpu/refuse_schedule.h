// What Halide says against a schedule, told at the line that it is about and in the schedule's own names.
#pragma once

#include <string>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// UserError at the directive whose stage and arguments the message names most of.
[[noreturn]] void refuse_schedule(const Kernel &kernel, const Directives &directives, const std::string &message);

}  // namespace tilewright
