// `print` shows what every step makes; its schedule is a file that `run` and `check` take back.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>

#include "tests/support/command.h"

using tilewright::test::CommandResult;
using tilewright::test::run_tilewright;

namespace {

const std::string model = "apps/models/lstm.pt2";
const std::string recorded = "apps/models/lstm.io.safetensors";

std::string replace(std::string text, const std::string &from, const std::string &to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

std::string write(const std::string &path, const std::string &text) {
    std::ofstream(path) << text;
    return path;
}

}  // namespace

TEST_CASE("stages on the CPU") {
    struct {
        const char *stage, *expected;
    } const stages[] = {{"graph", "aten.lstm.input"},          {"core", "tw.dot"},    {"algorithm", "tanh"},      {"groups", "kernel "},
                        {"schedule", "tilewright schedule 1"}, {"tiles", "produce "}, {"resources", "registers"}, {"plan", "plan cpu"}};
    for (const auto &[stage, expected] : stages) {
        const CommandResult result = run_tilewright({"print", model, "--target", "cpu", "--stage", stage});
        CHECK_MESSAGE(result.status == 0, stage, ": ", result.errors);
        CHECK_MESSAGE(result.output.find(expected) != std::string::npos, stage);
    }
}

TEST_CASE("a kernel that a library computes has no code to show") {
    const std::string product = "tests/data/operators/matmul_half.pt2", folder = tilewright::test::scratch_folder("print_engine");
    std::string text = run_tilewright({"print", product, "--target", "cuda", "--stage", "schedule"}).output;
    const std::size_t covers = text.find("covers "), from = text.find('\n', covers) + 1;
    REQUIRE(covers != std::string::npos);
    const std::string stage = text.substr(covers + 7, text.find('#', covers) - covers - 7);
    const std::size_t kernel = text.rfind("\nkernel ", covers) + 8;
    const std::string name = text.substr(kernel, text.find(' ', kernel) - kernel);
    text.replace(from, text.find("end", from) - from, "  " + stage + ".engine(\"cublaslt:2\")\n");
    const std::string path = write(folder + "/engine.schedule", text);
    for (const char *step : {"cuda", "tiles"}) {
        const CommandResult result =
            run_tilewright({"print", product, "--target", "cuda", "--schedule", path, "--stage", step, "--kernel", name});
        REQUIRE_MESSAGE(result.status == 0, result.errors);
        CHECK_MESSAGE(result.output.find(stage + ".engine(\"cublaslt:2\") computes it") != std::string::npos, result.output);
        CHECK(result.output.find("__global__") == std::string::npos);
    }
}

TEST_CASE("a printed schedule runs, fits, and is refused once it is wrong") {
    const std::string folder = tilewright::test::scratch_folder("print_stages");
    const std::string text = run_tilewright({"print", model, "--target", "cpu", "--stage", "schedule"}).output;
    const std::string path = write(folder + "/lstm.cpu.schedule", text);
    const CommandResult run =
        run_tilewright({"run", model, "--target", "cpu", "--schedule", path, "--inputs", recorded, "--check", recorded});
    CHECK_MESSAGE(run.status == 0, run.output, run.errors);
    CHECK(run.errors == "");
    const CommandResult check = run_tilewright({"check", path, model});
    CHECK_MESSAGE(check.status == 0, check.output, check.errors);

    const std::size_t at = text.find("algorithm ");
    REQUIRE(at != std::string::npos);
    std::string stale_text = text;
    stale_text.replace(at + 10, 16, "0123456789abcdef");
    const std::string stale = write(folder + "/stale.schedule", stale_text);
    const CommandResult stale_check = run_tilewright({"check", stale, model});
    CHECK(stale_check.status == 1);
    CHECK_MESSAGE(stale_check.output.find("is stale") != std::string::npos, stale_check.output);
    const CommandResult stale_run = run_tilewright({"run", model, "--target", "cpu", "--schedule", stale, "--inputs", recorded});
    CHECK(stale_run.status == 2);
    CHECK_MESSAGE(stale_run.errors.find("stale") != std::string::npos, stale_run.errors);

    const std::string other =
        write(folder + "/other.schedule", replace(text, "\ntarget", "\ntarget  cuda sm_90a \"NVIDIA H200\"\n# target"));
    CHECK(run_tilewright({"run", model, "--target", "cpu", "--schedule", other, "--inputs", recorded}).status == 2);
}

TEST_CASE("JSON forms can be read") {
    const CommandResult bench = run_tilewright({"bench", model, "--target", "cpu", "--seconds", "0.05", "--json"});
    REQUIRE_MESSAGE(bench.status == 0, bench.errors);
    CHECK(boost::json::parse(bench.output).at("median_us").to_number<double>() > 0);
    const CommandResult explain = run_tilewright({"explain", model, "--target", "cpu", "--json"});
    REQUIRE_MESSAGE(explain.status == 0, explain.errors);
    const boost::json::value report = boost::json::parse(explain.output);
    CHECK(report.at("kernels").as_array().size() > 0);
    CHECK(report.at("kernels").at(0).at("fuses").as_array().size() > 0);
    CHECK(report.at("edges").as_array().size() > 0);
    CHECK(report.at("kernels").at(0).at("time_us").to_number<double>() > 0);
    CHECK(report.at("more_fusion").is_array());
    CHECK(report.at("kernels").at(0).at("registers").is_null());  // unknown on a CPU, not 0
    const CommandResult untimed = run_tilewright({"explain", model, "--target", "cuda", "--no-time", "--json"});
    REQUIRE_MESSAGE(untimed.status == 0, untimed.errors);
    const boost::json::value kernel = boost::json::parse(untimed.output).at("kernels").at(0);
    CHECK(kernel.at("time_us").is_null());
    CHECK(kernel.at("registers").to_number<int>() > 0);
    CHECK(kernel.at("narrow_accesses").is_array());
    const std::string brief = run_tilewright({"explain", model, "--target", "cpu", "--no-time"}).output;
    const std::string whole = run_tilewright({"explain", model, "--target", "cpu", "--no-time", "--edges"}).output;
    CHECK(brief.find("kernels in") != std::string::npos);
    CHECK(brief.size() < whole.size());
    CHECK(run_tilewright({"doctor"}).status == 0);
}

TEST_CASE("edges name kernels, of views too, and the axis that keeps two groups apart") {
    const std::string output = run_tilewright({"explain", "apps/models/lstm.pt2", "--target", "cpu", "--no-time"}).output;
    CHECK_MESSAGE(output.find("\nfused  lstm_reshape") == std::string::npos, output);
    CHECK(output.find("runs over an axis d1 of extent 16, which has no place among the group's [2, 64]") != std::string::npos);
}
