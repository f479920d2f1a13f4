// Compiles candidates of a kernel here and times them in the measuring child.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "autotune/measuring_child.h"
#include "autotune/search.h"
#include "lowering/fusion/kernel.h"
#include "lowering/target.h"

namespace tilewright {

/// A folder for plans, gone with the object.
class PlanFolder {
public:
    PlanFolder();
    ~PlanFolder();
    PlanFolder(const PlanFolder &) = delete;
    std::string next();  ///< path of a new file; from any thread

private:
    std::string path_;
    std::atomic<int> files_ = 0;
};

/// What the runners of all kernels of a model share.
struct RunnerContext {
    const Target &target;
    const SymbolValues &symbols;  ///< sizes that are tuned for
    int jobs = 1;                 ///< compiled at once
    MeasuringChild &child;
    PlanFolder &folder;
};

class KernelRunner final : public CandidateRunner {
public:
    /// `reference`: the schedule whose outputs those of others are compared with.
    KernelRunner(const RunnerContext &context, const Kernel &kernel, Directives reference)
        : context_(context), kernel_(kernel), reference_directives_(std::move(reference)) {}

    std::vector<Candidate> build(std::vector<Directives> candidates) override;
    std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) override;

    /// The reference alone.
    Candidate build_reference();

private:
    Candidate build_one(const Directives &directives, const std::string &path) const;

    const RunnerContext &context_;
    const Kernel &kernel_;
    Directives reference_directives_;
    std::string reference_;  ///< its plan, once it is built
    double reference_seconds_ = 0;
};

/// The references of several kernels, `jobs` at once.
std::vector<Candidate> build_references(const std::vector<KernelRunner *> &runners, int jobs);

}  // namespace tilewright
