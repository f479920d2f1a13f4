// Whether a directive is given what it takes, and means something on the target.
#pragma once

#include "dsl/schedule/directive_table.h"
#include "dsl/schedule/loop_nest.h"

namespace tilewright {

/// UserError for a wrong number or kind of arguments.
void check_arguments(const Directive &directive, const DirectiveSpec &spec);
void check_target(const Directive &directive, const DirectiveSpec &spec, ScheduleTarget target);

}  // namespace tilewright
