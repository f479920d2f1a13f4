// Reads a line of directives, and the condition of a variant.
#pragma once

#include <string_view>
#include <vector>

#include "dsl/schedule/token_reader.h"

namespace tilewright {

/// STAGE.NAME(ARGUMENTS).NAME(ARGUMENTS)…, appended to `into`; an empty line or a comment appends nothing. UserError at the first fault.
void parse_directive_line(std::string_view line, const SourceLocation &start, Directives &into);

/// STAGE.AXIS <= NUMBER and …, up to the end of the line.
std::vector<ScheduleVariant::Comparison> parse_conditions(TokenReader &tokens);

}  // namespace tilewright
