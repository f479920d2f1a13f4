// Compiles candidates of a kernel here and times them in the measuring child.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <future>
#include <string>
#include <vector>

#include "autotune/measure/measuring_child.h"
#include "autotune/measure/plan_timer.h"
#include "autotune/search/search.h"
#include "lowering/fixed_inputs.h"
#include "lowering/fusion/kernel.h"
#include "lowering/target.h"

namespace tilewright {

class CompilingChildren;
class PlanFolder;

/// What the runners of all kernels of a model share.
struct RunnerContext {
    const Target &target;
    const SymbolValues &symbols;  ///< sizes that are tuned for
    std::string values;           ///< safetensors file with the model's inputs; empty: they are drawn
    MeasuringChild &child;
    PlanFolder &folder;
    boost::asio::thread_pool &builders;      ///< compile candidates
    CompilingChildren *compilers = nullptr;  ///< for a GPU
};

class KernelRunner final : public CandidateRunner {
public:
    /// `reference`: the schedule whose outputs those of others are compared with. `fixed`: inputs that are measured as weights, packed
    /// before the time counts. `sources`: of the others (value_sources.h).
    KernelRunner(const RunnerContext &context, const Kernel &kernel, FixedInputs fixed, Directives reference,
                 std::vector<std::string> sources)
        : context_(context),
          kernel_(kernel),
          fixed_(std::move(fixed)),
          reference_directives_(std::move(reference)),
          sources_(std::move(sources)) {}

    std::future<Candidate> build(Directives directives) override;
    void give_up_builds() override;
    std::vector<std::vector<double>> time(std::span<const Candidate> candidates, int rounds) override;

    const Directives &reference() const { return reference_directives_; }
    /// Its seconds, now.
    double time_reference();

private:
    Candidate build_one(const Directives &directives, const std::string &path) const;
    std::vector<std::vector<double>> ask(const TimingRequest &request);

    const RunnerContext &context_;
    const Kernel &kernel_;
    FixedInputs fixed_;
    Directives reference_directives_;
    std::string reference_;         ///< its plan, once it is built
    double reference_seconds_ = 0;  ///< the least so far
    std::vector<std::string> sources_;
    std::atomic<bool> given_up_ = false;  ///< what waits to be built need not be
};

/// The references of several kernels, at once.
std::vector<std::future<Candidate>> build_references(const std::vector<KernelRunner *> &runners);

}  // namespace tilewright
