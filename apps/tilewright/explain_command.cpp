#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <spdlog/spdlog.h>

#include "apps/api/model.h"
#include "apps/tilewright/command.h"
#include "apps/tilewright/tensors.h"
#include "autotune/measure/kernel_report.h"
#include "dsl/error.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/fusion.h"
#include "lowering/pipeline.h"
#include "lowering/tile_ir/lone_threads.h"
#include "runtime/bind_symbols.h"
#include "runtime/cuda/driver.h"
#include "runtime/host_memory.h"

namespace tilewright {
namespace {

constexpr int repeats = 20;

/// The model as it is compiled, and with everything fused where that differs.
struct Explained {
    Compilation chosen;
    std::optional<Compilation> fused;
    std::vector<double> chosen_seconds, fused_seconds;  ///< of each step; empty where nothing ran
    SymbolValues symbols;

    std::vector<KernelReport> kernels() const { return report_kernels(chosen, chosen_seconds, symbols); }
    std::vector<FusionCost> fusions() const {
        return fused ? report_fusions(chosen, chosen_seconds, *fused, fused_seconds, symbols) : std::vector<FusionCost>();
    }
};

std::vector<double> profile(const Compilation &c, const std::vector<HostTensor> &inputs) {
    return (c.target.kind == TargetKind::cpu ? make_cpu_executor(c.plan) : make_cuda_executor(c.plan))->profile(inputs, repeats);
}

std::optional<Compilation> compile_fused(const std::string &archive, Options options) {
    options.schedule.clear();
    options.fusion = "max";
    try {
        return compile_archive(archive, options);
    } catch (const UserError &error) {
        spdlog::info("with everything fused the model does not compile: {}", error.what());
        return std::nullopt;
    }
}

std::string share(double part, double whole) { return part > 0 && whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-"; }
std::string microseconds(double seconds) { return seconds > 0 ? fmt::format("{:.2f}", seconds * 1e6) : "-"; }
std::string percent(int value) { return value > 0 ? fmt::format("{} %", value) : "-"; }

/// What was not found out: "-" in tables, null in JSON.
boost::json::value known(double microseconds) { return microseconds > 0 ? boost::json::value(microseconds) : boost::json::value(); }
std::string known(int value, bool is_known) { return is_known ? std::to_string(value) : "-"; }
bool counts_registers(const Explained &model) { return model.chosen.target.kind == TargetKind::cuda; }

boost::json::array to_json(const std::vector<NarrowAccess> &accesses) {
    boost::json::array list;
    for (const NarrowAccess &access : accesses) {
        list.push_back(
            boost::json::object{{"tensor", access.tensor}, {"writes", access.writes}, {"bytes", access.bytes}, {"reason", access.reason}});
    }
    return list;
}

boost::json::object to_json(const KernelReport &report, bool with_resources) {
    const Resources &resources = report.resources;
    const auto counted = [&](int value) { return with_resources ? boost::json::value(value) : boost::json::value(); };
    boost::json::object entry{{"name", report.name},
                              {"algorithm", report.hash},
                              {"calls", report.calls},
                              {"time_us", known(report.seconds * 1e6)},
                              {"roofline_us", known(report.roofline_seconds * 1e6)},
                              {"registers", counted(resources.registers)},
                              {"spill_bytes", counted(resources.spill_bytes)},
                              {"shared_bytes", counted(resources.shared_bytes)},
                              {"occupancy_percent", counted(resources.occupancy)},
                              {"fuses", boost::json::value_from(report.stages)}};
    return entry;
}

void print_json(const Explained &model) {
    boost::json::array kernels, decisions, fusions;
    const std::vector<std::vector<NarrowAccess>> narrow = report_narrow_accesses(model.chosen);
    for (const KernelReport &report : model.kernels()) {
        const std::size_t k = kernels.size();
        boost::json::object entry = to_json(report, counts_registers(model));
        entry["narrow_accesses"] = to_json(narrow[k]);
        entry["notes"] = boost::json::value_from(model.chosen.schedules[k].notes);
        kernels.push_back(std::move(entry));
    }
    for (const FusionDecision &decision : model.chosen.partition.decisions) {
        decisions.push_back(boost::json::object{
            {"producer", decision.producer}, {"consumer", decision.consumer}, {"fused", decision.fused}, {"reason", decision.reason}});
    }
    for (const FusionCost &cost : model.fusions()) {
        fusions.push_back(boost::json::object{{"kernels", boost::json::value_from(cost.kernels)},
                                              {"apart_us", known(cost.apart_seconds * 1e6)},
                                              {"fused", to_json(cost.fused, counts_registers(model))}});
    }
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"target", model.chosen.target.to_string()},
                                                                  {"sizes", boost::json::value_from(model.symbols)},
                                                                  {"kernels", kernels},
                                                                  {"edges", decisions},
                                                                  {"more_fusion", fusions}}));
}

void print_row(const KernelReport &report, double total, bool with_resources) {
    const Resources &resources = report.resources;
    fmt::print("{:<34} {:>5} {:>10} {:>6} {:>8} {:>5} {:>7} {:>9} {:>9}  {}\n", report.name, report.calls, microseconds(report.seconds),
               share(report.seconds, total), share(report.roofline_seconds, report.seconds), known(resources.registers, with_resources),
               known(resources.spill_bytes, with_resources), known(resources.shared_bytes, with_resources), percent(resources.occupancy),
               fmt::join(report.stages, " "));
}

/// Launches of a kernel whose stages no directive spreads.
std::vector<std::string> lone_threads(const Compilation &c, std::size_t kernel) {
    const Directives &directives = c.schedules[kernel].variants[0].directives;
    return !c.target.gpu || find_engine(directives)
               ? std::vector<std::string>()
               : tile::lone_threads(lower_to_tiles(c.partition.kernels[kernel], directives, *c.target.gpu));
}

/// What the schedule file's tuning found, and what moves in pieces.
void print_remarks(const Compilation &chosen) {
    const std::vector<std::vector<NarrowAccess>> narrow = report_narrow_accesses(chosen);
    std::string notes, accesses, lone;
    for (std::size_t k = 0; k < narrow.size(); ++k) {
        const std::string &name = chosen.partition.kernels[k].name;
        for (const std::string &note : chosen.schedules[k].notes) {
            notes += fmt::format("{}: {}\n", name, note);
        }
        for (const std::string &launch : lone_threads(chosen, k)) {
            lone += fmt::format(
                "{}: launch {} has one thread a block; give its stage gpu_blocks and gpu_threads, or compute_at a loop of its reader\n",
                name, launch);
        }
        for (const NarrowAccess &access : narrow[k]) {
            accesses += fmt::format("{}: {} is {} {} bytes at a time: {}\n", name, access.tensor, access.writes ? "written" : "read",
                                    access.bytes, access.reason);
        }
    }
    for (const auto &[title, text] : {std::pair{"noted by the tuning", &notes}, {"narrow accesses", &accesses}, {"idle threads", &lone}}) {
        if (!text->empty()) {
            fmt::print("\n{}\n{}", title, *text);
        }
    }
}

void print_table(const Explained &model, bool all_edges) {
    const std::vector<KernelReport> reports = model.kernels();
    double total = 0;
    for (const KernelReport &report : reports) {
        total += report.seconds;
    }
    fmt::print("{} kernels in {} calls on {}{}\n\n", reports.size(), model.chosen.partition.calls.size(), model.chosen.target.to_string(),
               model.symbols.empty() ? "" : ", sizes " + to_text(model.symbols));
    fmt::print("{:<34} {:>5} {:>10} {:>6} {:>8} {:>5} {:>7} {:>9} {:>9}  fuses\n", "kernel", "calls", "time us", "share", "roofline",
               "regs", "spill B", "shared B", "occupancy");
    for (const KernelReport &report : reports) {
        print_row(report, total, counts_registers(model));
    }
    print_remarks(model.chosen);
    fmt::print("\nedges\n{}", all_edges ? print_decisions(model.chosen.partition) : print_decisions_by_kernel(model.chosen.partition));
    const std::vector<FusionCost> fusions = model.fusions();
    if (!fusions.empty()) {
        fmt::print("\none more fusion\n");
    }
    for (const FusionCost &cost : fusions) {
        const Resources &resources = cost.fused.resources;
        fmt::print("{}: ", fmt::join(cost.kernels, " + "));
        if (cost.fused.seconds > 0) {
            fmt::print("{} us apart, {} us as one kernel", microseconds(cost.apart_seconds), microseconds(cost.fused.seconds));
        } else {
            fmt::print("could be one kernel");  // nothing was timed
        }
        if (counts_registers(model)) {
            fmt::print(" with {} registers, {} bytes spilled, occupancy {}", resources.registers, resources.spill_bytes,
                       percent(resources.occupancy));
        }
        fmt::print("\n");
    }
}

}  // namespace

int explain_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options().input_options();
    line.flag("no-time", "run nothing; show what is known without running");
    line.flag("edges", "list each edge of the graph; by default those of equal kernels that have one reason share a line");
    line.flag("json", "print one JSON object");
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string archive = line.get<std::string>("MODEL.pt2");
    Explained model{compile_archive(archive, line.options()), compile_fused(archive, line.options()), {}, {}, {}};
    std::string why_not;
    const bool runs_here = model.chosen.target.kind == TargetKind::cpu || have_cuda_device(&why_not);
    if (!runs_here && !line.flag_given("no-time")) {
        std::fputs(fmt::format("not timed: {}\n", why_not).c_str(), stderr);
    }
    if (runs_here && !line.flag_given("no-time")) {
        const Plan &plan = model.chosen.plan;
        const std::vector<HostTensor> inputs = given_or_drawn_inputs(line, plan);
        model.symbols = sizes_of(plan, inputs);
        model.chosen_seconds = profile(model.chosen, inputs);
        if (!model.fusions().empty()) {
            model.fused_seconds = profile(*model.fused, inputs);
        }
    }
    line.flag_given("json") ? print_json(model) : print_table(model, line.flag_given("edges"));
    return success;
}

}  // namespace tilewright
