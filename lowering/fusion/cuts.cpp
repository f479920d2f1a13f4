// Other ways to group what a kernel computes: what the search tries, and what a schedule file says was chosen.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lowering/fusion/fusion.h"
#include "lowering/fusion/stage_graph.h"

namespace tilewright {

namespace {

constexpr std::size_t most_cuts = 8;

class CutFinder {
public:
    explicit CutFinder(const Algorithm &algorithm) : graph_(algorithm), nodes_(graph_.real_nodes()) {}

    std::vector<std::vector<std::string>> run() {
        // A product alone: an engine may compute it, and its epilogue is one pass over memory.
        for (int node : nodes_) {
            if (graph_.node(node).form == Form::contraction || graph_.node(node).form == Form::window) {
                add({node});
            }
        }
        // What is stored anyway, and what a reduction or product reads from a pointwise stage before it.
        for (int node : nodes_) {
            if (graph_.node(node).is_output) {
                add({node});
            }
        }
        for (int node : nodes_) {
            if (graph_.node(node).has_update()) {
                add(computed_operands(node));
            }
        }
        // What is computed again for each of several neighbours.
        for (int node : shifted_stages()) {
            add({node});
        }
        // Each reduction ends a kernel; what follows reads its result.
        for (int node : nodes_) {
            if (graph_.node(node).form == Form::reduction || graph_.node(node).form == Form::scan) {
                add({node});
            }
        }
        return std::move(cuts_);
    }

private:
    std::vector<int> computed_operands(int node) const {
        std::vector<int> operands;
        for (const EffectiveRead &read : graph_.effective_reads(node)) {
            if (read.producer >= 0 && !graph_.node(read.producer).has_update() && graph_.node(read.producer).cost > 0) {
                operands.push_back(read.producer);
            }
        }
        return operands;
    }

    /// Pointwise stages that others read at several places beside their own.
    std::vector<int> shifted_stages() const {
        constexpr int several = 3;
        std::map<int, int> places;
        for (int node : nodes_) {
            for (const EffectiveRead &read : graph_.effective_reads(node)) {
                const bool shifted = std::any_of(read.indices.begin(), read.indices.end(), [](const Halide::Expr &e) {
                    return !e.as<Halide::Internal::Variable>() && !Halide::Internal::is_const(e);
                });
                if (read.producer >= 0 && shifted && !graph_.node(read.producer).has_update() && graph_.node(read.producer).cost > 0) {
                    ++places[read.producer];
                }
            }
        }
        std::erase_if(places, [](const auto &entry) { return entry.second < several; });
        std::vector<int> stages;
        std::transform(places.begin(), places.end(), std::back_inserter(stages), [](const auto &entry) { return entry.first; });
        return stages;
    }

    void add(const std::vector<int> &nodes) {
        std::vector<std::string> names;
        for (int node : nodes) {
            const bool is_read = !graph_.node(node).readers.empty();
            const std::string name = graph_.node(node).name();
            if (is_read && std::find(names.begin(), names.end(), name) == names.end()) {
                names.push_back(name);
            }
        }
        if (!names.empty() && cuts_.size() < most_cuts && std::find(cuts_.begin(), cuts_.end(), names) == cuts_.end()) {
            cuts_.push_back(std::move(names));
        }
    }

    StageGraph graph_;
    std::vector<int> nodes_;
    std::vector<std::vector<std::string>> cuts_;
};

std::size_t kernels_in(const Partition &partition, const std::set<std::string> &hashes) {
    return static_cast<std::size_t>(std::count_if(partition.kernels.begin(), partition.kernels.end(),
                                                  [&](const Kernel &kernel) { return hashes.count(kernel.hash.to_string()) != 0; }));
}

/// How many of the file's algorithms the partition has. Kernels of one algorithm count once, or a partition that has one of them more often
/// would seem nearer to the file.
std::size_t found_in(const Partition &partition, const std::set<std::string> &hashes) {
    std::set<std::string> found;
    for (const Kernel &kernel : partition.kernels) {
        if (hashes.count(kernel.hash.to_string()) != 0) {
            found.insert(kernel.hash.to_string());
        }
    }
    return found.size();
}

/// With and without each join.
std::vector<FusionOptions> other_joins(const FusionOptions &options) {
    std::vector<FusionOptions> list;
    for (int joins = 1; joins < 16; ++joins) {
        FusionOptions other = options;
        other.streaming = options.streaming != ((joins & 1) != 0);
        other.mixed = options.mixed != ((joins & 2) != 0);
        other.gating = options.gating != ((joins & 4) != 0);
        other.rereads = options.rereads != ((joins & 8) != 0);
        list.push_back(other);
    }
    return list;
}

/// What another mode gives, where the file was made for all of that.
std::optional<Partition> partition_of_mode(const Algorithm &algorithm, const FusionOptions &options, const std::set<std::string> &hashes) {
    for (const FusionMode mode : {FusionMode::search, FusionMode::max, FusionMode::none}) {
        FusionOptions other = options;
        other.mode = mode;
        Partition candidate = mode == options.mode ? Partition() : partition(algorithm, other);
        if (!candidate.kernels.empty() && kernels_in(candidate, hashes) == candidate.kernels.size() &&
            found_in(candidate, hashes) == hashes.size()) {
            return candidate;
        }
    }
    return std::nullopt;
}

/// The cut of a kernel whose parts the file has, all of them.
std::vector<std::string> cut_in_file(const Kernel &kernel, const FusionOptions &options, const std::set<std::string> &hashes) {
    for (const std::vector<std::string> &cut : cuts_worth_trying(kernel)) {
        FusionOptions with_cut = options;
        with_cut.cuts = {{kernel.hash, cut}};
        const Partition parts = partition(kernel.algorithm, with_cut);
        if (parts.kernels.size() > 1 && kernels_in(parts, hashes) == parts.kernels.size()) {
            return cut;
        }
    }
    return {};
}

}  // namespace

std::vector<std::vector<std::string>> cuts_worth_trying(const Kernel &kernel) { return CutFinder(kernel.algorithm).run(); }

Partition partition_for(const Algorithm &algorithm, const FusionOptions &options, const ScheduleFile &file) {
    std::set<std::string> hashes;
    for (const KernelSchedule &entry : file.kernels) {
        hashes.insert(entry.algorithm);
    }
    FusionOptions chosen = options;
    Partition best = partition(algorithm, options);
    std::size_t most = found_in(best, hashes);
    if (most == hashes.size() && kernels_in(best, hashes) == best.kernels.size()) {
        return best;
    }
    if (FusionOptions other = options; options.can_finish_rows) {
        other.finishes_rows = !options.finishes_rows;
        Partition candidate = partition(algorithm, other);
        if (found_in(candidate, hashes) > most) {
            most = found_in(candidate, hashes);
            best = std::move(candidate);
            chosen = other;
        }
    }
    for (const FusionOptions &other : other_joins(chosen)) {
        Partition candidate = partition(algorithm, other);
        if (found_in(candidate, hashes) > most) {
            most = found_in(candidate, hashes);
            best = std::move(candidate);
            chosen = other;
        }
    }
    if (most < hashes.size()) {
        if (std::optional<Partition> whole = partition_of_mode(algorithm, options, hashes)) {
            return *std::move(whole);
        }
    }
    for (const Kernel &kernel : best.kernels) {
        if (!hashes.count(kernel.hash.to_string())) {
            const std::vector<std::string> cut = cut_in_file(kernel, chosen, hashes);
            if (!cut.empty()) {
                chosen.cuts[kernel.hash] = cut;
            }
        }
    }
    return chosen.cuts.size() > options.cuts.size() ? partition(algorithm, chosen) : best;
}

}  // namespace tilewright
