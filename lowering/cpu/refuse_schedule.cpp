#include "lowering/cpu/refuse_schedule.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "dsl/error.h"
#include "lowering/cpu/func_values.h"

namespace tilewright {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Letters, digits and '_' on end.
std::set<std::string> words_of(const std::string &text) {
    std::set<std::string> words;
    for (auto begin = text.begin(); begin != text.end();) {
        const auto end = std::find_if_not(begin, text.end(), is_name_character);
        if (end != begin) {
            words.emplace(begin, end);
        }
        begin = end == text.end() ? end : end + 1;
    }
    return words;
}

/// How many of a directive's own words the message has; its stage counts most.
int named_by(const std::set<std::string> &words, const Directive &directive) {
    int count = words.contains(func_name(directive.stage)) ? 2 : 0;
    for (const DirectiveArgument &argument : directive.arguments) {
        const auto *number = std::get_if<std::int64_t>(&argument);
        const std::string text = number ? std::to_string(*number) : std::get<std::string>(argument);
        count += words.contains(text) || words.contains(func_name(text)) ? 1 : 0;
    }
    return count;
}

void replace_all(std::string &text, const std::string &from, const std::string &to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

/// On one line, without the listing of loops that follows some messages, and with the stages' names.
std::string in_schedules_words(const std::string &message, const Kernel &kernel, const Directives &directives) {
    std::string text;
    for (const char c : message) {
        const char plain = std::isspace(static_cast<unsigned char>(c)) ? ' ' : c;
        if (plain != ' ' || (!text.empty() && text.back() != ' ')) {
            text += plain;
        }
    }
    const std::string prefix = "Error: ";
    text.erase(0, text.starts_with(prefix) ? prefix.size() : 0);
    if (const std::size_t listing = text.find("is used in the following places"); listing != std::string::npos) {
        text.resize(text.rfind('"', text.rfind('"', listing) - 1));
    }
    text.erase(text.find_last_not_of(" ;.") + 1);
    std::vector<std::string> stages;
    for (const Directive &directive : directives) {
        stages.push_back(directive.stage);
    }
    for (const Stage &stage : kernel.algorithm.stages) {
        stages.push_back(stage.name());
    }
    std::sort(stages.begin(), stages.end(), [](const std::string &a, const std::string &b) { return a.size() > b.size(); });
    for (const std::string &stage : stages) {
        replace_all(text, func_name(stage), stage);
    }
    return text;
}

}  // namespace

void refuse_schedule(const Kernel &kernel, const Directives &directives, const std::string &message) {
    const std::string cause = fmt::format("Halide refuses it: {}", in_schedules_words(message, kernel, directives));
    if (directives.empty()) {
        user_error("kernel {}: {}; give it other directives in a schedule file", kernel.name, cause);
    }
    const std::set<std::string> words = words_of(message);
    const auto less = [&](const Directive &a, const Directive &b) { return named_by(words, a) < named_by(words, b); };
    const Directive &named = *std::max_element(directives.begin(), directives.end(), less);
    schedule_error(named.location, named.to_string(), fmt::format("kernel {}: {}", kernel.name, cause), "change or remove the directive");
}

}  // namespace tilewright
