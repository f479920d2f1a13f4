// The subcommands of `tilewright`, and what they share: options, help, exit statuses.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <vector>

#include "lowering/options.h"

namespace tilewright {

enum ExitStatus {
    success = 0,
    mismatch = 1,  ///< a check failed: values differ, or a schedule file is stale
    user_mistake = 2,
    internal_fault = 3,
};

using Arguments = std::vector<std::string>;
struct Command {
    const char *name;
    const char *usage;
    const char *summary;
    int (*run)(const Command &self, const Arguments &arguments);
};
std::span<const Command> commands();

/// One subcommand's arguments: declares options with add(), then parse().
class CommandLine {
public:
    explicit CommandLine(const Command &command);

    template<typename T> CommandLine &add(const char *name, const char *help) {
        options_.add_options()(name, boost::program_options::value<T>(), help);
        return *this;
    }
    CommandLine &flag(const char *name, const char *help);
    /// An argument without a name; all of them are required, in the order of the calls.
    CommandLine &positional(const char *name);
    /// --target, --schedule, --jobs, --strict, --deterministic, --engines, --fusion, --no-cache.
    CommandLine &model_options();

    /// --inputs and --sizes, for given_or_drawn_inputs().
    CommandLine &input_options();

    /// False where help was asked for and printed. UserError for an unknown option, a missing or surplus argument.
    bool parse(const Arguments &arguments);

    bool has(const std::string &name) const { return values_.contains(name) && !values_[name].defaulted(); }
    bool flag_given(const std::string &name) const { return values_.contains(name) && values_[name].as<bool>(); }
    template<typename T> T get(const std::string &name, T otherwise = {}) const {
        return values_.contains(name) ? values_[name].as<T>() : otherwise;
    }
    /// An option in seconds: UserError unless it is a number above 0 and finite.
    double positive_seconds(const std::string &name, double otherwise) const;
    /// What model_options() declared.
    Options options() const;

private:
    [[noreturn]] void refuse_unknown(const std::string &option) const;

    const Command &command_;
    boost::program_options::options_description options_;
    boost::program_options::options_description hidden_;
    boost::program_options::positional_options_description positions_;
    std::vector<std::string> required_;
    boost::program_options::variables_map values_;
};

/// "tilewright 0.1.0, build 0123456789ab".
std::string version_line();

/// Not in the help: what `autotune` starts to run candidates in.
inline constexpr const char *measure_command_name = "measure-kernel";
int measure_command(const Command &self, const Arguments &arguments);

int autotune_command(const Command &self, const Arguments &arguments);
int run_command(const Command &self, const Arguments &arguments);
int bench_command(const Command &self, const Arguments &arguments);
int explain_command(const Command &self, const Arguments &arguments);
int print_command(const Command &self, const Arguments &arguments);
int check_command(const Command &self, const Arguments &arguments);
int doctor_command(const Command &self, const Arguments &arguments);
int help_command(const Command &self, const Arguments &arguments);

/// Values of symbolic sizes: "s0=8,s1=1024". UserError where the text has another form.
std::map<std::string, std::int64_t> parse_sizes(const std::string &text);

}  // namespace tilewright
