#include "dsl/schedule/directive_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/error.h"
#include "dsl/schedule/at_entry.h"

namespace tilewright {

static std::string place_of(const SourceLocation &location, const std::string &otherwise) {
    return location.line > 0 ? fmt::format("{}:{}:{}", location.file, location.line, location.column) : otherwise;
}

std::string place_of(const Directive &directive) { return place_of(directive.location, directive.to_string()); }

void schedule_error(const SourceLocation &location, const std::string &place, const std::string &cause, const std::string &repair) {
    const std::string where = place_of(location, place);
    std::string message = fmt::format("{}: {}; {}", where, cause, repair);
    // What a damaged file holds must not break the line.
    std::replace_if(
        message.begin(), message.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; }, '?');
    if (location.line > 0) {
        throw UserError(message);
    }
    throw UnplacedScheduleError(message);
}

void directive_error(const Directive &directive, const std::string &cause, const std::string &repair) {
    schedule_error(directive.location, directive.to_string(), cause, repair);
}

void argument_error(const Directive &directive, std::size_t argument, const std::string &cause, const std::string &repair) {
    SourceLocation place = directive.location;
    if (argument < directive.columns.size()) {
        place.column = directive.columns[argument];
    }
    schedule_error(place, directive.to_string(), cause, repair);
}

const std::string &word(const Directive &directive, std::size_t argument) { return std::get<std::string>(directive.arguments[argument]); }

std::int64_t number(const Directive &directive, std::size_t argument) { return std::get<std::int64_t>(directive.arguments[argument]); }

}  // namespace tilewright
