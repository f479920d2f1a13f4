// The one table of directives: the parser, the verifier, the C++ form and `tilewright help directives` all read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

enum class ArgumentKind {
    axis,            ///< a loop of the stage
    reduction_axis,  ///< a loop of the stage over a reduction axis
    new_axis,        ///< a name that the directive introduces
    stage,           ///< another stage of the kernel
    stage_axis,      ///< a loop of the stage that the argument before names
    count,           ///< an integer, at least 1
    keyword,         ///< one word of a list
    text,            ///< a quoted string
};

struct ArgumentSpec {
    std::string_view name;
    ArgumentKind kind;
    std::string_view keywords = "";  ///< of ArgumentKind::keyword, separated by blanks
    bool repeated = false;           ///< one or more; only the last argument
};

/// The machines on which a directive means something.
enum class DirectiveTarget { both, cpu, cuda };

struct DirectiveSpec {
    std::string_view name;
    std::vector<ArgumentSpec> arguments;
    DirectiveTarget target = DirectiveTarget::both;
    std::string_view halide;   ///< Halide's name; empty where the directive is ours
    std::string_view meaning;  ///< one line
    bool repeats = false;      ///< may be given more than once for a stage
};

const std::vector<DirectiveSpec> &directive_table();
const DirectiveSpec *find_directive(std::string_view name);  ///< nullptr where there is none

/// "split(axis, outer, inner, factor)".
std::string signature(const DirectiveSpec &directive);
/// The table as text, one directive a line.
std::string help_directives();

}  // namespace tilewright
