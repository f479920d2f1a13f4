// Compiles candidates of a kernel here and times them in the measuring child.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "autotune/measuring_child.h"
#include "autotune/plan_timer.h"
#include "autotune/search.h"
#include "lowering/fixed_inputs.h"
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
    std::string values;           ///< safetensors file with the model's inputs; empty: they are drawn
    int jobs = 1;                 ///< compiled at once
    MeasuringChild &child;
    PlanFolder &folder;
};

class KernelRunner final : public CandidateRunner {
public:
    /// `reference`: the schedule whose outputs those of others are compared with. `fixed`: inputs that are measured as weights, packed before
    /// the time counts. `sources`: of the others (value_sources.h).
    KernelRunner(const RunnerContext &context, const Kernel &kernel, FixedInputs fixed, Directives reference, std::vector<std::string> sources)
        : context_(context), kernel_(kernel), fixed_(std::move(fixed)), reference_directives_(std::move(reference)), sources_(std::move(sources)) {}

    std::vector<Candidate> build(std::vector<Directives> candidates) override;
    std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) override;

    /// The reference alone.
    Candidate build_reference();
    /// Its seconds, now.
    double time_reference();

private:
    Candidate build_one(const Directives &directives, const std::string &path) const;
    std::vector<std::vector<double>> ask(const TimingRequest &request);

    const RunnerContext &context_;
    const Kernel &kernel_;
    FixedInputs fixed_;
    Directives reference_directives_;
    std::string reference_;  ///< its plan, once it is built
    double reference_seconds_ = 0;  ///< the least so far
    std::vector<std::string> sources_;
};

/// The references of several kernels, `jobs` at once.
std::vector<Candidate> build_references(const std::vector<KernelRunner *> &runners, int jobs);

}  // namespace tilewright
