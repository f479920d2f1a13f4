#include <boost/json.hpp>
#include <chrono>
#include <filesystem>

#include "apps/api/model.h"
#include "apps/tilewright/command.h"
#include "apps/tilewright/tensors.h"
#include "autotune/inputs/compare.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

/// Compares all outputs; prints the first difference of each that has one.
std::string number_of(std::size_t count, const char *thing) { return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s"); }

int check_outputs(const std::string &path, std::span<const HostTensor> outputs) {
    const std::vector<HostTensor> expected = read_numbered(path, "out", static_cast<int>(outputs.size()));
    int wrong = 0;
    double largest = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Comparison comparison = compare(expected[i], outputs[i]);
        largest = std::max(largest, comparison.largest_error);
        if (comparison.mismatch) {
            fmt::print("mismatch: out{}: {} (largest error {:.2e}, tolerance {:.0e}, relative to the largest value)\n", i,
                       *comparison.mismatch, comparison.largest_error, default_tolerance(expected[i].meta.dtype));
            ++wrong;
        }
    }
    if (wrong == 0) {
        fmt::print("ok: {} as recorded, largest error {:.2e} of the largest value\n", number_of(outputs.size(), "output"), largest);
    }
    return wrong == 0 ? success : mismatch;
}

/// What a run reads must not be replaced by what it writes.
void require_other_file(const std::string &out, const std::string &read) {
    std::error_code absent;
    if (std::filesystem::is_regular_file(out, absent) && std::filesystem::equivalent(out, read, absent)) {
        user_error("--out {}: the run reads this file; name another", out);
    }
}

}  // namespace

int run_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("inputs", "safetensors file with the inputs in0, in1, …");
    line.add<std::string>("out", "safetensors file to write the outputs to, as out0, out1, …");
    line.add<std::string>("check", "safetensors file with recorded outputs to compare with; exit status 1 where they differ");
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string archive = line.get<std::string>("MODEL.pt2");
    if (line.has("out")) {
        for (const char *read : {"MODEL.pt2", "inputs", "check", "schedule"}) {
            require_other_file(line.get<std::string>("out"), line.get<std::string>(read));
        }
    }
    const Model model = Model::load(archive, line.options());
    const int inputs_wanted = static_cast<int>(model.plan().user_inputs.size());
    if (!line.has("inputs") && inputs_wanted > 0) {
        user_error("run: --inputs is missing; the model takes {}", number_of(inputs_wanted, "input"));
    }
    const std::vector<HostTensor> inputs =
        inputs_wanted == 0 ? std::vector<HostTensor>{} : read_numbered(line.get<std::string>("inputs"), "in", inputs_wanted);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<HostTensor> outputs = model.run(inputs);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (line.has("out")) {
        write_numbered(line.get<std::string>("out"), "out", outputs);
    }
    if (line.has("check")) {
        return check_outputs(line.get<std::string>("check"), outputs);
    }
    fmt::print("{}: {} in {:.3f} ms on {}\n", archive, number_of(outputs.size(), "output"), elapsed.count(),
               model.plan().target == TargetKind::cpu ? "cpu" : "cuda");
    return success;
}

}  // namespace tilewright
