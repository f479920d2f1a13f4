#include <algorithm>
#include <array>

#include "apps/tilewright/command.h"
#include "dsl/closest_word.h"
#include "dsl/error.h"
#include "dsl/schedule/at_entry.h"
#include "dsl/schedule/directive_errors.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/cpu/compile.h"
#include "lowering/cuda/compile.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/fusion.h"
#include "lowering/pipeline.h"
#include "lowering/schedule_file.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {
namespace {

/// Calls `visit` for each kernel, or for the one that is asked for.
template<typename Visit> void for_each_kernel(const Compilation &c, const std::string &only, Visit &&visit) {
    bool found = false;
    for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
        if (only.empty() || c.partition.kernels[k].name == only) {
            found = true;
            at_entry(c.schedules[k], [&] { visit(c.partition.kernels[k], c.schedules[k], k); });
        }
    }
    if (!found && !only.empty()) {
        user_error("--kernel {}: the model has no such kernel; `print --stage groups` lists them", only);
    }
}

void print_groups(const Compilation &c) { fmt::print("{}", print(c.partition)); }

void print_schedule(const Compilation &c, const std::string &only) {
    if (only.empty()) {
        fmt::print("{}", print(schedule_file_of(c)));
        return;
    }
    for_each_kernel(c, only, [](const Kernel &, const KernelSchedule &schedule, std::size_t) { fmt::print("{}\n", print(schedule)); });
}

/// What a kernel that a library computes has in place of code; empty for the others.
std::string engine_note(const Kernel &kernel, const Directives &directives) {
    const Directive *engine = find_engine(directives);
    return engine ? fmt::format("// kernel {}: {}.engine(\"{}\") computes it, no code is emitted; --engines none shows code of its own\n",
                                kernel.name, engine->stage, word(*engine, 0))
                  : "";
}

void print_tiles(const Compilation &c, const std::string &only) {
    for_each_kernel(c, only, [&](const Kernel &kernel, const KernelSchedule &schedule, std::size_t) {
        for (const ScheduleVariant &variant : schedule.variants) {
            if (const std::string note = engine_note(kernel, variant.directives); !note.empty()) {
                fmt::print("{}\n", note);
            } else if (c.target.kind == TargetKind::cpu) {
                fmt::print("{}\n", print_cpu_statement(kernel, variant.directives));
            } else {
                fmt::print("{}\n", tile::print(lower_to_tiles(kernel, variant.directives, *c.target.gpu)));
            }
        }
    });
}

/// Each launch of a GPU's kernels as text; what a library runs, as the library's name.
template<typename Text> void print_sources(const char *stage, const Compilation &c, const std::string &only, Text &&text) {
    if (c.target.kind == TargetKind::cpu) {
        user_error("print --stage {}: the target is cpu; add --target cuda (no GPU is needed)", stage);
    }
    for_each_kernel(c, only, [&](const Kernel &kernel, const KernelSchedule &schedule, std::size_t) {
        for (const ScheduleVariant &variant : schedule.variants) {
            const std::string note = engine_note(kernel, variant.directives);
            fmt::print("{}\n", note.empty() ? text(kernel.name, lower_cuda(kernel, variant.directives, *c.target.gpu).source) : note);
        }
    });
}

void print_cuda(const Compilation &c, const std::string &only) {
    print_sources("cuda", c, only, [](const std::string &, const std::string &source) { return source; });
}

void print_ptx(const Compilation &c, const std::string &only) {
    print_sources("ptx", c, only, [&](const std::string &name, const std::string &source) {
        return compile_to_ptx(name, source, c.target.gpu->architecture);
    });
}

void print_resources(const Compilation &c, const std::string &only) {
    fmt::print("{:<34} {:>9} {:>12} {:>8} {:>7} {:>10}\n", "kernel", "registers", "spilled B", "shared B", "stack B", "code B");
    for_each_kernel(c, only, [&](const Kernel &kernel, const KernelSchedule &, std::size_t k) {
        for (const CodeObject &code : c.kernels[k].code) {
            // A CPU's compiler does not say what it takes.
            const auto known = [&](auto value) { return c.target.kind == TargetKind::cpu ? "-" : std::to_string(value); };
            fmt::print("{:<34} {:>9} {:>12} {:>8} {:>7} {:>10}\n", kernel.name, known(code.registers),
                       known(code.spill_stores + code.spill_loads), known(code.shared_bytes), known(code.stack_bytes), code.image.size());
        }
    });
}

struct StageEntry {
    const char *name;
    PipelineStep last;
    void (*print)(const Compilation &, const std::string &kernel);
    bool by_kernel = false;  ///< prints kernels one by one, so that one can be asked for
};

const std::array stages = {
    StageEntry{"graph", PipelineStep::import, [](const Compilation &c, const std::string &) { fmt::print("{}", print(c.program.graph)); }},
    StageEntry{"core", PipelineStep::decompose,
               [](const Compilation &c, const std::string &) { fmt::print("{}", print(c.program.graph)); }},
    StageEntry{"algorithm", PipelineStep::translate,
               [](const Compilation &c, const std::string &) { fmt::print("{}", print(c.translated.algorithm)); }},
    StageEntry{"groups", PipelineStep::partition, [](const Compilation &c, const std::string &) { print_groups(c); }},
    StageEntry{"schedule", PipelineStep::schedule, print_schedule, true},
    StageEntry{"tiles", PipelineStep::schedule, print_tiles, true},
    StageEntry{"cuda", PipelineStep::schedule, print_cuda, true},
    StageEntry{"ptx", PipelineStep::schedule, print_ptx, true},
    StageEntry{"resources", PipelineStep::compile, print_resources, true},
    StageEntry{"plan", PipelineStep::assemble, [](const Compilation &c, const std::string &) { fmt::print("{}", print(c.plan)); }},
};

std::vector<std::string> stage_names(bool only_by_kernel = false) {
    std::vector<std::string> names;
    for (const StageEntry &entry : stages) {
        if (entry.by_kernel || !only_by_kernel) {
            names.emplace_back(entry.name);
        }
    }
    return names;
}

/// "a, b or c"
std::string listed(const std::vector<std::string> &names, const char *conjunction) {
    return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), conjunction, names.back());
}

}  // namespace

int print_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("MODEL.pt2").model_options();
    line.add<std::string>("stage", listed(stage_names(), "or").c_str());
    line.add<std::string>("kernel", ("only the kernel of this name, for " + listed(stage_names(true), "and")).c_str());
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string stage = line.get<std::string>("stage");
    const auto entry = std::find_if(stages.begin(), stages.end(), [&](const StageEntry &e) { return stage == e.name; });
    if (entry == stages.end()) {
        user_error("print: {}; {}give --stage {}", stage.empty() ? "--stage is missing" : "there is no stage \"" + stage + "\"",
                   did_you_mean(stage, stage_names()), listed(stage_names(), "or"));
    }
    if (line.has("kernel") && !entry->by_kernel) {
        user_error("print: --stage {} shows the whole program, --kernel {} one kernel; ask for its {}", stage,
                   line.get<std::string>("kernel"), listed(stage_names(true), "or"));
    }
    Options options = line.options();
    if ((stage == "cuda" || stage == "ptx") && options.target.empty()) {
        options.target = "cuda";
    }
    entry->print(compile_archive(line.get<std::string>("MODEL.pt2"), options, entry->last), line.get<std::string>("kernel"));
    return success;
}

}  // namespace tilewright
