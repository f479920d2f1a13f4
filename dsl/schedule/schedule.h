// The schedule language: a flat list of directives a kernel. FORMAT.md has each directive as before -> after.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilewright {

/// Where something stands in a schedule file; line 0 where it was made in memory.
struct SourceLocation {
    std::string file;
    int line = 0;
    int column = 0;
};

/// A number, or the name of an axis, a stage, or a keyword (register, shared, warp, block, …).
using DirectiveArgument = std::variant<std::int64_t, std::string>;

/// `stage.name(arguments)`: one edit of how one stage is computed.
struct Directive {
    std::string stage;
    std::string name;
    std::vector<DirectiveArgument> arguments;
    SourceLocation location;   ///< of the directive's name
    std::vector<int> columns;  ///< of each argument; empty where it was made in memory

    std::string to_string() const;  ///< "softmax.split(d1, o, i, 8)"
    friend bool operator==(const Directive &a, const Directive &b) {
        return a.stage == b.stage && a.name == b.name && a.arguments == b.arguments;
    }
};
using Directives = std::vector<Directive>;

/// Directives that hold where a condition on the kernel's extents does; the first that matches wins. No condition: `else`, or the only one.
struct ScheduleVariant {
    struct Comparison {
        std::string extent;  ///< "stage.axis"
        std::string op;      ///< one of <= < >= > ==
        std::int64_t value = 0;
        SourceLocation location;
        bool holds(std::int64_t extent_value) const;
        std::string to_string() const;  ///< "softmax.d1 <= 1024"
    };
    std::vector<Comparison> conditions;  ///< joined by `and`
    Directives directives;
};

/// A kernel's entry in a schedule file.
struct KernelSchedule {
    std::string name;
    std::string algorithm;                  ///< 16 hexadecimal digits
    std::vector<std::string> fuses;         ///< stages, in the kernel's order
    std::vector<std::string> covers;        ///< places of the graph, in terms that survive renaming
    std::vector<ScheduleVariant> variants;  ///< at least one; the last may be an `else`
    std::vector<std::string> notes;         ///< comment lines without their '#': what was measured
    SourceLocation location;
};

struct ScheduleFile {
    int version = 1;
    std::string model;   ///< archive's file name
    std::string graph;   ///< hash of the whole partitioned model
    std::string target;  ///< "cpu", "cuda sm_90a"
    std::string device;  ///< "NVIDIA H200", or the CPU's feature string
    std::vector<KernelSchedule> kernels;

    const KernelSchedule *find(std::string_view kernel) const;
};

std::string print(const ScheduleFile &file);
/// The lines of one kernel's entry, as they stand in a file.
std::string print(const KernelSchedule &kernel);
/// One line for each run of directives that edit the same stage, chained as in C++ and broken before column 120.
std::string print(const Directives &directives, int indent = 0);
/// Reads print()'s form. UserError "file:line:column: cause; repair" at the first fault.
ScheduleFile parse_schedule(std::string_view text, const std::string &file);
/// Reads directive lines alone, print(Directives)'s form.
Directives parse_directives(std::string_view text, const std::string &file);
/// UserError where there is no such file or it cannot be read.
ScheduleFile read_schedule(const std::string &path);
/// Whole or not at all: a new file beside it, made durable, then renamed over it. UserError where the folder cannot be written.
void write_schedule(const ScheduleFile &file, const std::string &path);

/// Throws UserError "file:line:column: cause; repair"; without a line the place is what is given instead.
[[noreturn]] void schedule_error(const SourceLocation &location, const std::string &place, const std::string &cause,
                                 const std::string &repair);

}  // namespace tilewright
