#include <fmt/format.h>

#include <algorithm>

#include "dsl/schedule/directive_table.h"
#include "dsl/schedule/lexer.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

namespace {

constexpr std::size_t line_limit = 120;

std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
        }
        result += (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) ? ' ' : c;
    }
    return result + "\"";
}

std::string word_or_quoted(const std::string &text) { return is_word(text) ? text : quoted(text); }

/// ".split(d1, o, i, 8)".
std::string call_text(const Directive &directive) {
    const DirectiveSpec *spec = find_directive(directive.name);
    std::string text = "." + directive.name + "(";
    for (std::size_t i = 0; i < directive.arguments.size(); ++i) {
        text += i ? ", " : "";
        if (const auto *number = std::get_if<std::int64_t>(&directive.arguments[i])) {
            text += std::to_string(*number);
            continue;
        }
        const std::string &word = std::get<std::string>(directive.arguments[i]);
        const bool as_text = spec && i < spec->arguments.size() && spec->arguments[i].kind == ArgumentKind::text;
        text += as_text ? quoted(word) : word;
    }
    return text + ")";
}

/// Words after a key, wrapped into several lines that open with the key.
std::string word_list(const std::string &key, const std::vector<std::string> &words) {
    std::string text;
    std::string line;
    for (const std::string &word : words) {
        const std::string shown = word_or_quoted(word);
        if (!line.empty() && line.size() + 1 + shown.size() > line_limit) {
            text += line + "\n";
            line.clear();
        }
        line += line.empty() ? "  " + key + " " + shown : " " + shown;
    }
    return line.empty() ? text : text + line + "\n";
}

}  // namespace

std::string Directive::to_string() const { return stage + call_text(*this); }

bool ScheduleVariant::Comparison::holds(std::int64_t extent_value) const {
    if (op == "<=") {
        return extent_value <= value;
    }
    if (op == "<") {
        return extent_value < value;
    }
    if (op == ">=") {
        return extent_value >= value;
    }
    return op == ">" ? extent_value > value : extent_value == value;
}

std::string ScheduleVariant::Comparison::to_string() const { return fmt::format("{} {} {}", extent, op, value); }

const KernelSchedule *ScheduleFile::find(std::string_view kernel) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelSchedule &k) { return k.name == kernel; });
    return found == kernels.end() ? nullptr : &*found;
}

std::string print(const Directives &directives, int indent) {
    const std::string margin(indent, ' ');
    std::string text;
    std::string line;
    const Directive *previous = nullptr;
    for (const Directive &directive : directives) {
        const std::string call = call_text(directive);
        const bool continues = previous && previous->stage == directive.stage && line.size() + call.size() <= line_limit;
        if (!continues) {
            text += line.empty() ? "" : line + "\n";
            line = margin + directive.stage;
        }
        line += call;
        previous = &directive;
    }
    return line.empty() ? text : text + line + "\n";
}

std::string print(const KernelSchedule &kernel) {
    std::string text = fmt::format("kernel {}  algorithm {}\n", word_or_quoted(kernel.name), kernel.algorithm);
    text += word_list("fuses", kernel.fuses);
    text += word_list("covers", kernel.covers);
    for (const ScheduleVariant &variant : kernel.variants) {
        if (kernel.variants.size() == 1 && variant.conditions.empty()) {
            text += print(variant.directives, 2);
            continue;
        }
        std::string condition;
        for (const auto &comparison : variant.conditions) {
            condition += (condition.empty() ? "when " : " and ") + comparison.to_string();
        }
        text += "  " + (condition.empty() ? "else" : condition) + "\n" + print(variant.directives, 4);
    }
    for (const std::string &note : kernel.notes) {
        std::string one_line = note;
        std::replace_if(
            one_line.begin(), one_line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
        text += one_line.empty() ? "  #\n" : "  # " + one_line + "\n";
    }
    return text + "end\n";
}

std::string print(const ScheduleFile &file) {
    std::string text = fmt::format("tilewright schedule {}\n", file.version);
    text += fmt::format("model   {}  graph {}\n", word_or_quoted(file.model), word_or_quoted(file.graph));
    text += fmt::format("target  {} {}\n", file.target, quoted(file.device));
    for (const KernelSchedule &kernel : file.kernels) {
        text += "\n" + print(kernel);
    }
    return text;
}

}  // namespace tilewright
