#include "dsl/schedule/check_arguments.h"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/schedule/directive_errors.h"
#include "dsl/schedule/lexer.h"

namespace tilewright {
namespace {

constexpr std::int64_t largest_count = 1 << 30;

void check_argument(const Directive &directive, const DirectiveSpec &spec, std::size_t i) {
    const ArgumentSpec &wanted = spec.arguments[std::min(i, spec.arguments.size() - 1)];
    const auto *number = std::get_if<std::int64_t>(&directive.arguments[i]);
    if (wanted.kind == ArgumentKind::count) {
        if (!number) {
            argument_error(directive, i,
                           fmt::format("argument '{}' of {} is a number, not '{}'", wanted.name, spec.name,
                                       std::get<std::string>(directive.arguments[i])),
                           fmt::format("write {}", signature(spec)));
        }
        if (*number < 1 || *number > largest_count) {
            argument_error(directive, i, fmt::format("argument '{}' of {} is {}", wanted.name, spec.name, *number),
                           fmt::format("give a number from 1 to {}", largest_count));
        }
        return;
    }
    if (number) {
        argument_error(directive, i, fmt::format("argument '{}' of {} is a name, not the number {}", wanted.name, spec.name, *number),
                       fmt::format("write {}", signature(spec)));
    }
    const std::string &word = std::get<std::string>(directive.arguments[i]);
    if (wanted.kind == ArgumentKind::keyword) {
        const std::string padded = " " + std::string(wanted.keywords) + " ";
        if (word.empty() || padded.find(" " + word + " ") == std::string::npos) {
            argument_error(directive, i, fmt::format("'{}' is no {} of {}", word, wanted.name, spec.name),
                           fmt::format("use one of: {}", wanted.keywords));
        }
    } else if (wanted.kind == ArgumentKind::new_axis && !is_identifier(word)) {
        argument_error(directive, i, fmt::format("'{}' is no name for an axis", word), "use letters, digits and '_', a letter first");
    }
}

}  // namespace

void check_arguments(const Directive &directive, const DirectiveSpec &spec) {
    const std::size_t wanted = spec.arguments.size();
    const bool repeated = wanted > 0 && spec.arguments.back().repeated;
    const std::size_t given = directive.arguments.size();
    if (repeated ? given < wanted : given != wanted) {
        directive_error(
            directive,
            fmt::format("{} takes {}{} argument{}, not {}", spec.name, repeated ? "at least " : "", wanted, wanted == 1 ? "" : "s", given),
            fmt::format("write {}", signature(spec)));
    }
    for (std::size_t i = 0; i < given; ++i) {
        check_argument(directive, spec, i);
    }
}

void check_target(const Directive &directive, const DirectiveSpec &spec, ScheduleTarget target) {
    if (target == ScheduleTarget::any || spec.target == DirectiveTarget::both) {
        return;
    }
    if ((spec.target == DirectiveTarget::cpu) != (target == ScheduleTarget::cpu)) {
        directive_error(directive, fmt::format("{} means nothing on target {}", spec.name, target == ScheduleTarget::cpu ? "cpu" : "cuda"),
                        target == ScheduleTarget::cpu ? "use parallel, vectorize and unroll there, or tune for this target"
                                                      : "use gpu_blocks and gpu_threads there, or tune for this target");
    }
}

}  // namespace tilewright
