#include <algorithm>
#include <boost/json.hpp>

#include "apps/api/model.h"
#include "apps/tilewright/command.h"
#include "apps/tilewright/tensors.h"
#include "dsl/error.h"
#include "lowering/fusion/fusion.h"
#include "lowering/pipeline.h"
#include "runtime/cuda_driver.h"

namespace tilewright {
namespace {

/// What is known of one kernel, over all its calls.
struct KernelReport {
    int calls = 0;
    double seconds = 0;
    std::vector<std::string> stages;
};

std::vector<KernelReport> report_kernels(const Compilation &c, std::span<const double> step_seconds) {
    std::vector<KernelReport> reports(c.partition.kernels.size());
    std::map<std::string, double> by_name;
    for (std::size_t s = 0; s < step_seconds.size(); ++s) {
        by_name[c.plan.steps[s].kernel] += step_seconds[s];
    }
    for (const KernelCall &call : c.partition.calls) {
        ++reports[call.kernel].calls;
    }
    for (std::size_t k = 0; k < reports.size(); ++k) {
        reports[k].seconds = by_name[c.partition.kernels[k].name];
        for (const Stage &stage : c.partition.kernels[k].algorithm.stages) {
            reports[k].stages.push_back(stage.name());
        }
    }
    return reports;
}

boost::json::object resources_of(const CompiledKernel &kernel) {
    int registers = 0, spills = 0, shared = 0;
    for (const CodeObject &code : kernel.code) {
        registers = std::max(registers, code.registers);
        spills += code.spill_stores + code.spill_loads;
        shared = std::max(shared, code.shared_bytes);
    }
    return {{"registers", registers}, {"spill_bytes", spills}, {"shared_bytes", shared}};
}

void print_json(const Compilation &c, const std::vector<KernelReport> &reports) {
    boost::json::array kernels;
    for (std::size_t k = 0; k < reports.size(); ++k) {
        boost::json::object entry{{"name", c.partition.kernels[k].name}, {"algorithm", c.partition.kernels[k].hash.to_string()},
                                  {"calls", reports[k].calls}, {"time_us", reports[k].seconds * 1e6},
                                  {"fuses", boost::json::value_from(reports[k].stages)}};
        for (auto &[key, value] : resources_of(c.kernels[k])) {
            entry[key] = value;
        }
        kernels.push_back(std::move(entry));
    }
    boost::json::array decisions;
    for (const FusionDecision &decision : c.partition.decisions) {
        decisions.push_back(boost::json::object{{"producer", decision.producer}, {"consumer", decision.consumer}, {"fused", decision.fused},
                                                {"reason", decision.reason}});
    }
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"target", c.target.to_string()}, {"kernels", kernels}, {"edges", decisions}}));
}

void print_table(const Compilation &c, const std::vector<KernelReport> &reports, bool timed) {
    double total = 0;
    for (const KernelReport &report : reports) {
        total += report.seconds;
    }
    fmt::print("{} kernels in {} calls on {}\n\n", reports.size(), c.partition.calls.size(), c.target.to_string());
    fmt::print("{:<34} {:>5} {:>10} {:>6} {:>5} {:>7} {:>9}  fuses\n", "kernel", "calls", "time us", "share", "regs", "spill B", "shared B");
    for (std::size_t k = 0; k < reports.size(); ++k) {
        const boost::json::object resources = resources_of(c.kernels[k]);
        fmt::print("{:<34} {:>5} {:>10} {:>6} {:>5} {:>7} {:>9}  {}\n", c.partition.kernels[k].name, reports[k].calls,
                   timed ? fmt::format("{:.1f}", reports[k].seconds * 1e6) : "-",
                   timed && total > 0 ? fmt::format("{:.0f} %", 100 * reports[k].seconds / total) : "-", resources.at("registers").as_int64(),
                   resources.at("spill_bytes").as_int64(), resources.at("shared_bytes").as_int64(), fmt::join(reports[k].stages, " "));
    }
    fmt::print("\nedges\n{}", print_decisions(c.partition));
}

}  // namespace

int explain_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("inputs", "safetensors file with the inputs in0, in1, …; by default values are drawn");
    line.add<std::string>("sizes", "symbolic sizes of drawn inputs, as s0=8,s1=1024");
    line.flag("no-time", "run nothing; show what is known without running");
    line.flag("json", "print one JSON object");
    if (!line.parse(arguments)) {
        return success;
    }
    const Compilation c = compile_archive(line.get<std::string>("MODEL.pt2"), line.options());
    std::vector<double> seconds;
    std::string why_not;
    const bool runs_here = c.target.kind == TargetKind::cpu || have_cuda_device(&why_not);
    if (!runs_here && !line.flag_given("no-time")) {
        fmt::print(stderr, "not timed: {}\n", why_not);
    }
    if (runs_here && !line.flag_given("no-time")) {
        const std::unique_ptr<Executor> executor = c.target.kind == TargetKind::cpu ? make_cpu_executor(c.plan) : make_cuda_executor(c.plan);
        const std::vector<HostTensor> inputs = line.has("inputs")
                                                   ? read_numbered(line.get<std::string>("inputs"), "in", static_cast<int>(c.plan.user_inputs.size()))
                                                   : draw_inputs(c.plan, parse_sizes(line.get<std::string>("sizes")));
        seconds = executor->profile(inputs, 20);
    }
    const std::vector<KernelReport> reports = report_kernels(c, seconds);
    if (line.flag_given("json")) {
        print_json(c, reports);
    } else {
        print_table(c, reports, !seconds.empty());
    }
    return success;
}

}  // namespace tilewright
