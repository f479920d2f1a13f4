// What the command says to mistakes, on one line, and its exit statuses.
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/wait.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/safetensors.h"
#include "runtime/memory_plan.h"
#include "tests/support/archive_parts.h"
#include "tests/support/command.h"

using tilewright::test::CommandResult;

namespace {

void expect_mistake(const std::vector<std::string> &arguments, const std::string &message) {
    const CommandResult result = tilewright::test::run_tilewright(arguments);
    CHECK_MESSAGE(result.status == 2, result.output, result.errors);
    CHECK_MESSAGE(result.errors.find(message) != std::string::npos, result.errors);
    CHECK(result.errors.starts_with("error: "));
    CHECK(result.errors.find('\n') == result.errors.size() - 1);
    CHECK(result.output == "");
}

}  // namespace

TEST_CASE("arguments") {
    expect_mistake({"runn"}, "there is no command \"runn\"; did you mean run? `tilewright help` lists them");
    expect_mistake({"bnch"}, "there is no command \"bnch\"; did you mean bench? `tilewright help` lists them");
    expect_mistake({"run"}, "run: MODEL.pt2 is missing; usage: tilewright run MODEL.pt2");
    expect_mistake({"run", "a.pt2", "b.pt2"}, "run: too many arguments");
    expect_mistake({"run", "a.pt2", "--nonsense"}, "see `tilewright run --help`");
    expect_mistake({"run", "a.pt2", "--schedul", "x", "--shedule=x"},
                   "run: there is no option --shedule; did you mean --schedule? see `tilewright run --help`");
    expect_mistake({"run", "a.pt2", "--target", "tpu"}, "target \"tpu\": there is no such target; use cpu or cuda");
    expect_mistake({"run", "a.pt2", "--jobs", "many"}, "the argument ('many') for option '--jobs' is invalid");
    expect_mistake({"bench", "a.pt2", "--jobs", "0"}, "--jobs 0: give a number of 1 or more");
    expect_mistake({"bench", "a.pt2", "--seconds", "inf"}, "--seconds inf: give a number of seconds above 0");
    expect_mistake({"autotune", "a.pt2", "--budget", "nan"}, "--budget nan: give a number of seconds above 0");
    expect_mistake({"run", "two\nlines.pt2", "--target", "cpu"}, "two?lines.pt2: No such file");
    expect_mistake({"print", "a.pt2"}, "print: --stage is missing");
    expect_mistake({"print", "a.pt2", "--stage", "soup"}, "there is no stage \"soup\"; give --stage graph, core,");
    expect_mistake({"print", "a.pt2", "--stage", "tile"}, "there is no stage \"tile\"; did you mean tiles? give --stage");
    expect_mistake({"check", "README.md", "a.pt2"},
                   "README.md:3:1: this is no schedule file; a schedule file begins with 'tilewright schedule 1'");
    expect_mistake({"print", "a.pt2", "--stage", "graph", "--kernel", "k"}, "--stage graph shows the whole program, --kernel k one kernel");
    expect_mistake({"check", "only.schedule"}, "check: MODEL.pt2 is missing");
    expect_mistake({"run", ""}, "run: MODEL.pt2 is given an empty text");  // as a shell passes variables that are not set
    expect_mistake({"run", "a.pt2", "--schedule", ""}, "run: --schedule is given an empty text; give a value, or leave it out");
}

TEST_CASE("sizes") {
    const std::string model = "apps/models/gpt2_dynamic.pt2";
    expect_mistake({"bench", model, "--target", "cpu", "--sizes", "s48=-1"}, "size s48=-1: the model allows 2 to 64");
    expect_mistake({"bench", model, "--target", "cpu", "--sizes", "s48=99999999999999999999"},
                   "\"s48=99999999999999999999\" is not of the form s0=8");
    expect_mistake({"bench", model, "--target", "cpu", "--sizes", "s7=2"}, "size s7: the model has no such symbol; it has s48, s58");
}

TEST_CASE("bench tells the sizes that it drew") {
    const CommandResult result = tilewright::test::run_tilewright(
        {"bench", "apps/models/gpt2_dynamic.pt2", "--target", "cpu", "--sizes", "s48=3", "--seconds", "0.01"});
    CHECK_MESSAGE(result.output.find(", sizes s48=3, s58=") != std::string::npos, result.output, result.errors);
}

TEST_CASE("files") {
    expect_mistake({"run", "absent.pt2", "--target", "cpu", "--inputs", "x.safetensors"}, "absent.pt2");
    expect_mistake({"run", "README.md", "--target", "cpu"}, "README.md");
    expect_mistake({"run", "apps/models/lstm.pt2", "--target", "cpu", "--schedule", "absent.schedule"}, "absent.schedule");
    expect_mistake({"check", "apps/models/lstm.pt2", "lstm.schedule"},
                   "lstm.pt2:1:1: this is an archive, not a schedule file; a schedule file begins with 'tilewright schedule 1'");
    expect_mistake({"run", "apps/models/lstm.pt2", "--target", "cpu"}, "run: --inputs is missing; the model takes 1 input\n");
    expect_mistake({"run", "apps/models/lstm.pt2", "--target", "cpu", "--inputs", "absent.safetensors"}, "absent.safetensors");
    expect_mistake({"run", "apps/models/lstm.pt2", "--target", "cpu", "--inputs", "apps/models/special.io.safetensors"},
                   "special.io.safetensors: the tensor \"in1\" is one too many; the model has 1 of them");
}

TEST_CASE("a schedule for another architecture, and for another target") {
    const std::string model = "apps/models/lstm.pt2";
    const tilewright::tests::TemporaryFolder folder;
    const std::string path = folder.file("hopper.schedule");
    std::ofstream(path)
        << tilewright::test::run_tilewright({"print", model, "--target", "cuda", "--arch", "sm_90a", "--stage", "schedule"}).output;
    expect_mistake({"print", model, "--target", "cuda", "--arch", "sm_80", "--stage", "schedule", "--schedule", path},
                   "run `tilewright autotune` for this target, or name the other with --arch sm_90a\n");
    expect_mistake({"print", model, "--target", "cpu", "--stage", "schedule", "--schedule", path},
                   "or name the other with --target cuda\n");
}

TEST_CASE("check finds what only lowering finds, and says where") {
    const std::string model = "apps/models/distilbert.pt2";
    std::string text =
        tilewright::test::run_tilewright({"print", model, "--target", "cuda", "--arch", "sm_90a", "--stage", "schedule"}).output;
    const std::string rows = "row_in_block, 8)";
    REQUIRE(text.find(rows) != std::string::npos);
    text.replace(text.find(rows), rows.size(), "row_in_block, 800)");
    const tilewright::tests::TemporaryFolder folder;
    const std::string path = folder.file("wide.schedule");
    std::ofstream(path) << text;
    expect_mistake({"check", path, model}, "wide.schedule:9:9: its loops ask for 12800 threads a block; there are at most 1024");
}

TEST_CASE("what is read is not written over") {
    const std::string model = "apps/models/lstm.pt2", inputs = "apps/models/lstm.io.safetensors";
    const std::string before = tilewright::read_file(model);
    expect_mistake({"run", model, "--target", "cpu", "--inputs", inputs, "--out", inputs},
                   "lstm.io.safetensors: the run reads this file; name another");
    expect_mistake({"autotune", model, "--target", "cpu", "--out", "absent/a.schedule"},
                   "cannot write absent/a.schedule: No such file or directory");
    expect_mistake({"autotune", model, "--target", "cpu", "--out", model}, "lstm.pt2: the schedule would replace a file that is none");
    CHECK(tilewright::read_file(model) == before);
}

TEST_CASE("output that cannot be written is an error, and closed streams are none") {
    const auto shell = [](const std::string &rest) {
        return WEXITSTATUS(std::system((tilewright::test::build_folder() + "/bin/tilewright " + rest).c_str()));
    };
    CHECK(shell("help >/dev/full 2>&1") == 2);
    CHECK(shell("print apps/models/lstm.pt2 --stage graph >/dev/full 2>&1") == 2);
    CHECK(shell("print apps/models/lstm.pt2 --stage graph <&- >&- 2>&-") == 0);
    const std::string schedule = tilewright::test::scratch_folder("streams") + "/a.schedule";
    CHECK(shell("autotune apps/models/lstm.pt2 --target cpu --budget 0.1 --records " + schedule + ".sqlite --out " + schedule +
                " 2>/dev/full") == 0);
    CHECK(tilewright::read_file(schedule).starts_with("tilewright schedule 1"));
}

TEST_CASE("a value that differs is printed with its index, and the exit status is 1") {
    const std::string inputs = "apps/models/lstm.io.safetensors",
                      expected = tilewright::test::scratch_folder("mismatch") + "/zeros.safetensors";
    tilewright::NamedTensors zeros;
    for (const auto &[name, tensor] : tilewright::read_safetensors(inputs)) {
        zeros.emplace_back(name, tilewright::HostTensor::zeros(tensor.meta.dtype, tilewright::evaluate(tensor.meta.sizes, {})));
    }
    tilewright::write_safetensors(expected, zeros);
    const CommandResult result =
        tilewright::test::run_tilewright({"run", "apps/models/lstm.pt2", "--target", "cpu", "--inputs", inputs, "--check", expected});
    CHECK(result.status == 1);
    CHECK_MESSAGE(result.output.starts_with("mismatch: out0: "), result.output);
}

TEST_CASE("an unknown level of the log is told, and warnings are kept") {
    ::setenv("TILEWRIGHT_LOG", "loud", 1);
    const CommandResult result = tilewright::test::run_tilewright({"help", "directives"});
    ::unsetenv("TILEWRIGHT_LOG");
    CHECK(result.status == 0);
    CHECK(result.output.starts_with("split(axis, outer, inner, factor)"));
    CHECK(result.errors == "TILEWRIGHT_LOG=loud: there is no such level; use warn, debug, passes or off\n");
}

TEST_CASE("the log shows the tiles after every pass") {
    ::setenv("TILEWRIGHT_LOG", "passes", 1);
    const CommandResult result =
        tilewright::test::run_tilewright({"print", "apps/models/lstm.pt2", "--target", "cuda", "--stage", "tiles", "--kernel", "lstm"});
    ::unsetenv("TILEWRIGHT_LOG");
    CHECK_MESSAGE(result.status == 0, result.errors);
    CHECK(result.errors.find("// after widen_accesses\n") != std::string::npos);
}

TEST_CASE("help") {
    CHECK(tilewright::test::run_tilewright({"--version"}).output.starts_with("tilewright 0.1.0, build "));
    const CommandResult help = tilewright::test::run_tilewright({"help"});
    CHECK(help.status == 0);
    for (const char *command : {"autotune", "run", "bench", "explain", "print", "check", "doctor"}) {
        CHECK(help.output.find(command) != std::string::npos);
        const CommandResult own = tilewright::test::run_tilewright({command, "--help"});
        CHECK(own.status == 0);
        CHECK_MESSAGE(own.output.starts_with("usage: tilewright "), command);
        CHECK(own.output == tilewright::test::run_tilewright({"help", command}).output);
    }
    CHECK(help.output.find("TILEWRIGHT_LOG") != std::string::npos);
    CHECK(tilewright::test::run_tilewright({"help", "directives"}).output.find("compute_at(stage, axis)") != std::string::npos);
}
