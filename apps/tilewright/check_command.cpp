#include <algorithm>
#include <set>

#include "apps/tilewright/command.h"
#include "dsl/error.h"
#include "dsl/schedule/at_entry.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/choose_schedules.h"
#include "lowering/cpu/compile.h"
#include "lowering/cuda/engine.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/schedule_axes.h"
#include "lowering/pipeline.h"
#include "lowering/schedule_file.h"
#include "lowering/tile_ir/lone_threads.h"

namespace tilewright {
namespace {

/// Why the model has no kernel of an entry's algorithm any more: what there is instead, as far as names and places tell.
std::string cause(const KernelSchedule &entry, const Partition &partition) {
    for (const Kernel &kernel : partition.kernels) {
        if (kernel.hash.to_string() == entry.algorithm) {
            return fmt::format("the model's kernel {} has this algorithm and an entry of its own", kernel.name);
        }
        if (kernel.name == entry.name) {
            return fmt::format("the model's kernel of this name has algorithm {}", kernel.hash.to_string());
        }
    }
    const std::set<std::string> places(entry.covers.begin(), entry.covers.end());
    for (const KernelCall &call : partition.calls) {
        if (places.contains(call.place)) {
            return fmt::format("its place {} is now computed by kernel {}", call.place, partition.kernels[call.kernel].name);
        }
    }
    return "the model has no kernel of this name and none of its places";
}

std::string place_of(const KernelSchedule &entry) { return fmt::format("{}:{}", entry.location.file, entry.location.line); }

/// The faults that only lowering finds: loops that ask for too many threads, tiles that do not fit. Tells what is legal and slow.
void check_lowering(const Kernel &kernel, const KernelSchedule &entry, const Target &target) {
    for (const ScheduleVariant &variant : entry.variants) {
        if (find_engine(variant.directives)) {
            continue;
        }
        if (!target.gpu) {
            check_cpu(kernel, variant.directives);
            continue;
        }
        for (const std::string &launch : tile::lone_threads(lower_to_tiles(kernel, variant.directives, *target.gpu))) {
            fmt::print(
                "{}: kernel {}: launch {} has one thread a block; give its stage gpu_blocks and gpu_threads, or compute_at a loop of its "
                "reader\n",
                place_of(entry), entry.name, launch);
        }
    }
}

/// What an entry says of the model beside its hash, against what is so. True where all of it holds.
bool check_words(const std::vector<std::string> &said, const std::vector<std::string> &actual, const KernelSchedule &entry,
                 const char *key) {
    if (said.empty() || said == actual) {
        return true;
    }
    fmt::print("{}: kernel {}: the line '{}' does not fit the model; it should read: {} {}\n", place_of(entry), entry.name, key, key,
               fmt::join(actual, " "));
    return false;
}

/// Counts the lines of a file that say what is not so, though each kernel has its entry.
int check_statements(const std::string &path, const ScheduleFile &file, const Compilation &c, const MatchedEntries &matched) {
    int wrong = 0;
    for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
        if (const KernelSchedule *entry = matched.of_kernel[k]; entry && entry->name == c.partition.kernels[k].name) {
            wrong += check_words(entry->fuses, stages_of(c.partition.kernels[k]), *entry, "fuses") ? 0 : 1;
            wrong += check_words(entry->covers, places_of(c.partition, k), *entry, "covers") ? 0 : 1;
        }
    }
    if (const std::string graph = partition_hash(c.partition); matched.stale.empty() && graph != file.graph) {
        fmt::print("{}:2: the file is for graph {}, the model's is {}: its kernels fit, where and how often they run changed\n", path,
                   file.graph, graph);
        ++wrong;
    }
    return wrong;
}

}  // namespace

int check_command(const Command &self, const Arguments &arguments) {
    CommandLine line(self);
    line.positional("FILE.schedule").positional("MODEL.pt2");
    if (!line.parse(arguments)) {
        return success;
    }
    const std::string path = line.get<std::string>("FILE.schedule");
    const ScheduleFile file = read_schedule(path);
    Options options;
    options.schedule = path;
    options.target = file.target.starts_with("cuda") ? "cuda" : file.target;
    if (const std::size_t blank = file.target.find(' '); blank != std::string::npos) {
        options.architecture = file.target.substr(blank + 1);
    }
    const Compilation c = compile_archive(line.get<std::string>("MODEL.pt2"), options, PipelineStep::partition);
    const MatchedEntries matched = match_entries(c.partition, file);
    for (const KernelSchedule *entry : matched.stale) {
        fmt::print("{}:{}: kernel {} is stale: {}\n", path, entry->location.line, entry->name, cause(*entry, c.partition));
    }
    for (std::size_t k = 0; k < c.partition.kernels.size(); ++k) {
        const Kernel &kernel = c.partition.kernels[k];
        if (const KernelSchedule *entry = matched.of_kernel[k]) {
            at_entry(*entry, [&] {
                check_entry(schedule_axes(kernel), *entry, c.target.kind == TargetKind::cpu ? ScheduleTarget::cpu : ScheduleTarget::cuda);
                check_lowering(kernel, *entry, c.target);
            });
        } else {
            fmt::print("{}: kernel {} (algorithm {}) has no entry{}\n", path, kernel.name, kernel.hash.to_string(),
                       matched.stale.empty() ? "; it runs under its default schedule" : "");
        }
    }
    if (!matched.stale.empty()) {
        fmt::print("{}: {} of {} entries are stale, and the file is refused; run `tilewright autotune`, or remove them\n", path,
                   matched.stale.size(), file.kernels.size());
        return mismatch;
    }
    if (const int wrong = check_statements(path, file, c, matched); wrong > 0) {
        fmt::print("{}: {} lines do not say what is so; run `tilewright autotune`, or mend them\n", path, wrong);
        return mismatch;
    }
    fmt::print("{}: {} kernels fit {}\n", path, file.kernels.size(), line.get<std::string>("MODEL.pt2"));
    return success;
}

}  // namespace tilewright
