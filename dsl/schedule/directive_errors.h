// What is wrong with one directive, or with one of its arguments.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/schedule/schedule.h"

namespace tilewright {

/// UserError at the directive's place, or at its argument's.
[[noreturn]] void directive_error(const Directive &directive, const std::string &cause, const std::string &repair);
[[noreturn]] void argument_error(const Directive &directive, std::size_t argument, const std::string &cause, const std::string &repair);

/// "file:line:column"; without a line the directive itself.
std::string place_of(const Directive &directive);

/// Arguments of a directive whose kinds were checked.
const std::string &word(const Directive &directive, std::size_t argument);
std::int64_t number(const Directive &directive, std::size_t argument);

}  // namespace tilewright
