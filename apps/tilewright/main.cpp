// The command: finds the subcommand, runs it, and turns errors into one line and an exit status.
#include <Halide.h>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <new>
#include <system_error>
#include <unistd.h>

#include "apps/api/logging.h"
#include "apps/tilewright/command.h"
#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "dsl/schedule/directive_table.h"

namespace tilewright {
namespace {

constexpr Command table[] = {
    {"autotune", "tilewright autotune MODEL.pt2 [--target cuda|cpu] [--out FILE] [--budget SECONDS] [options]",
     "Searches fusion and schedules by measuring, and writes a schedule file.", autotune_command},
    {"run", "tilewright run MODEL.pt2 --inputs X.safetensors [--schedule FILE] [--out Y.safetensors] [--check EXPECTED.safetensors]",
     "Runs a model once. Inputs are in0, in1, …, outputs out0, out1, …, in the order of the model's signature.", run_command},
    {"bench", "tilewright bench MODEL.pt2 [--schedule FILE] [--inputs X.safetensors] [--sizes S=N,…] [--json]", "Times a model.",
     bench_command},
    {"explain", "tilewright explain MODEL.pt2 [--schedule FILE] [--json]",
     "Shows each kernel: what it fuses, its time and resources, and why its neighbours are not part of it.", explain_command},
    {"print", "tilewright print MODEL.pt2 --stage STAGE [--kernel NAME]",
     "Prints what a step of the compiler makes: graph, core, algorithm, groups, schedule, tiles, cuda, ptx, resources or plan.", print_command},
    {"check", "tilewright check FILE.schedule MODEL.pt2",
     "Says whether a schedule file still fits a model; exits with 1 where it does not. Needs no GPU.", check_command},
    {"doctor", "tilewright doctor", "Looks at GPU, driver, toolkit and Halide: what works here and what does not.", doctor_command},
    {"help", "tilewright help [COMMAND|directives]", "Prints this text, a command's own, or the directives of schedule files.",
     help_command},
};

/// Closed standard streams would hand their numbers to the next files that are opened, and messages would be written into those.
void open_standard_streams() {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        if (::fcntl(stream, F_GETFD) < 0) {
            (void)!::open("/dev/null", O_RDWR);
        }
    }
}

int dispatch(const Arguments &arguments) {
    if (!arguments.empty() && arguments[0] == measure_command_name) {
        return measure_command({measure_command_name, "", "", measure_command}, {});
    }
    const std::string name = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ? "help" : arguments[0];
    if (name == "--version") {
        fmt::print("{}\n", version_line());
        return success;
    }
    std::vector<std::string> names;
    for (const Command &command : table) {
        if (name == command.name) {
            return command.run(command, Arguments(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()));
        }
        names.emplace_back(command.name);
    }
    user_error("there is no command \"{}\"; {}`tilewright help` lists them", name, did_you_mean(name, names));
}

/// A message is one line, whatever the names in it hold.
int fail(ExitStatus status, std::string message) {
    std::replace_if(
        message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    std::fputs((message + "\n").c_str(), stderr);
    return status;
}

int guarded(const Arguments &arguments) {
    const std::string bug = "internal error: this is a bug in Tilewright: ";
    try {
        const int status = dispatch(arguments);
        if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
            return status;
        }
        return fail(user_mistake, "error: standard output cannot be written; free space there, or send it elsewhere");
    } catch (const UserError &error) {
        return fail(user_mistake, fmt::format("error: {}", error.what()));
    } catch (const std::bad_alloc &) {
        return fail(user_mistake, "error: out of memory");
    } catch (const InternalError &error) {
        return fail(internal_fault, fmt::format("internal error: {}", error.what()));
    } catch (const Halide::Error &error) {  // is no std::exception
        return fail(internal_fault, bug + error.what());
    } catch (const std::system_error &error) {
        if (std::ferror(stdout) != 0) {
            return fail(user_mistake,
                        fmt::format("error: standard output cannot be written ({}); free space there, or send it elsewhere", error.what()));
        }
        return fail(internal_fault, bug + error.what());
    } catch (const std::exception &error) {
        return fail(internal_fault, bug + error.what());
    }
}

}  // namespace

std::span<const Command> commands() { return table; }

int help_command(const Command &, const Arguments &arguments) {
    if (!arguments.empty() && arguments[0] == "directives") {
        fmt::print("{}", help_directives());
        return success;
    }
    if (!arguments.empty() && !arguments[0].starts_with("-")) {
        return dispatch({arguments[0], "--help"});
    }
    fmt::print("tilewright compiles tensor programs; every decision of the compiler is a line in a schedule file.\n\n");
    for (const Command &command : table) {
        fmt::print("  {:<9} {}\n", command.name, command.summary);
    }
    fmt::print(
        "\n`tilewright COMMAND --help` lists a command's options, `tilewright --version` says which this is. Exit status: 0 done, 1 a "
        "check failed, 2 a mistake in what was given, "
        "3 a bug of Tilewright.\n{}",
        logging_help());
    return success;
}

}  // namespace tilewright

int main(int argc, char **argv) {
    tilewright::open_standard_streams();
    tilewright::configure_logging();
    return tilewright::guarded({argv + 1, argv + argc});
}
