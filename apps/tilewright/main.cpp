// The command: finds the subcommand, runs it, and turns errors into one line and an exit status.
#include <Halide.h>
#include <cstdio>
#include <exception>
#include <new>

#include "apps/api/logging.h"
#include "apps/tilewright/command.h"
#include "dsl/error.h"
#include "dsl/schedule/directive_table.h"

namespace tilewright {
namespace {

constexpr Command table[] = {
    {"autotune", "tilewright autotune MODEL.pt2 [--target cuda|cpu] [--out FILE] [--budget SECONDS] [options]",
     "Searches fusion and schedules by measuring, and writes a schedule file.", autotune_command},
    {"run", "tilewright run MODEL.pt2 --inputs X.safetensors [--schedule FILE] [--out Y.safetensors] [--check EXPECTED.safetensors]",
     "Runs a model once. Inputs are in0, in1, …, outputs out0, out1, …, in the order of the model's signature.", run_command},
    {"bench", "tilewright bench MODEL.pt2 [--schedule FILE] [--inputs X.safetensors] [--sizes S=N,…] [--json]",
     "Times a model.", bench_command},
    {"explain", "tilewright explain MODEL.pt2 [--schedule FILE] [--json]",
     "Shows each kernel: what it fuses, its time and resources, and why its neighbours are not part of it.", explain_command},
    {"print", "tilewright print MODEL.pt2 --stage STAGE [--kernel NAME]",
     "Prints what a step of the compiler makes: graph, core, algorithm, groups, schedule, tiles, cuda, resources or plan.", print_command},
    {"check", "tilewright check FILE.schedule MODEL.pt2",
     "Says whether a schedule file still fits a model; exits with 1 where it does not. Needs no GPU.", check_command},
    {"doctor", "tilewright doctor", "Looks at GPU, driver, toolkit and Halide: what works here and what does not.", doctor_command},
    {"help", "tilewright help [COMMAND|directives]", "Prints this text, a command's own, or the directives of schedule files.", help_command},
};

int dispatch(const Arguments &arguments) {
    if (!arguments.empty() && arguments[0] == measure_command_name) {
        return measure_command({measure_command_name, "", "", measure_command}, {});
    }
    const std::string name = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ? "help" : arguments[0];
    for (const Command &command : table) {
        if (name == command.name) {
            return command.run(command, Arguments(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()));
        }
    }
    user_error("there is no command \"{}\"; `tilewright help` lists them", name);
}

int guarded(const Arguments &arguments) {
    try {
        return dispatch(arguments);
    } catch (const UserError &error) {
        fmt::print(stderr, "error: {}\n", error.what());
        return user_mistake;
    } catch (const std::bad_alloc &) {
        fmt::print(stderr, "error: out of memory\n");
        return user_mistake;
    } catch (const InternalError &error) {
        fmt::print(stderr, "internal error: {}\n", error.what());
    } catch (const Halide::Error &error) {  // is no std::exception
        fmt::print(stderr, "internal error: this is a bug in Tilewright: {}\n", error.what());
    } catch (const std::exception &error) {
        fmt::print(stderr, "internal error: this is a bug in Tilewright: {}\n", error.what());
    }
    return internal_fault;
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
    fmt::print("\n`tilewright COMMAND --help` lists a command's options. Exit status: 0 done, 1 a check failed, 2 a mistake in what was given, "
               "3 a bug of Tilewright.\n{}", logging_help());
    return success;
}

}  // namespace tilewright

int main(int argc, char **argv) {
    tilewright::configure_logging();
    return tilewright::guarded({argv + 1, argv + argc});
}
