#include "dsl/schedule/directive_errors.h"

namespace tilewright {

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
