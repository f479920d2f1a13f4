#include "autotune/search/kernel_runner.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "autotune/measure/child_answer.h"
#include "autotune/measure/estimator.h"
#include "autotune/measure/kernel_plan.h"
#include "autotune/measure/measurer.h"
#include "autotune/search/compiling_children.h"
#include "autotune/search/plan_folder.h"
#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "lowering/compile_kernels.h"
#include "runtime/plan_archive.h"

namespace tilewright {
namespace {

constexpr double start_seconds = 60;  ///< within which the child must have started and run the reference

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

Candidate KernelRunner::build_one(const Directives &directives, const std::string &path) const {
    Candidate candidate{directives, {}, ""};
    std::vector<std::byte> bytes;
    try {
        const CompiledKernel compiled = compile_kernel(kernel_, directives, context_.target);
        candidate.measurement.resources = resources_of(compiled, context_.target.gpu);
        bytes = save_plan(kernel_plan(kernel_, compiled, fixed_, context_.symbols, context_.target));
    } catch (const std::exception &error) {
        candidate.measurement.failure = one_line(error.what());
        return candidate;
    }
    try {
        write_file_atomically(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
        candidate.plan = path;
    } catch (const UserError &error) {
        candidate.measurement.failure = candidate.not_kept = error.what();
    }
    return candidate;
}

std::vector<std::future<Candidate>> build_references(const std::vector<KernelRunner *> &runners) {
    std::vector<std::future<Candidate>> built;
    for (KernelRunner *runner : runners) {
        built.push_back(runner->build(runner->reference()));
    }
    return built;
}

std::future<Candidate> KernelRunner::build(Directives directives) {
    given_up_ = false;
    auto task =
        std::make_shared<std::packaged_task<Candidate()>>([this, directives = std::move(directives), path = context_.folder.next()] {
            if (given_up_) {
                return Candidate{directives, {0, "was not built", {}}, ""};
            }
            Candidate candidate = build_one(directives, path);
            if (directives == reference_directives_) {
                reference_ = candidate.plan;  // the search waits for it before anything is timed
            }
            return candidate;
        });
    std::future<Candidate> built = task->get_future();
    boost::asio::post(context_.builders, [task] { (*task)(); });
    return built;
}

void KernelRunner::give_up_builds() {
    given_up_ = true;
    if (context_.compilers) {
        context_.compilers->interrupt();
    }
}

std::vector<std::vector<double>> KernelRunner::ask(const TimingRequest &request) {
    // A candidate that takes a hundred times as long as the default is given up.
    const auto plans = static_cast<double>(request.candidates.size() + 1);
    const double limit = (context_.child.is_running() ? 20 : start_seconds) + (20 * request.rounds * plans + 100) * reference_seconds_;
    try {
        std::vector<std::vector<double>> times =
            parse_child_answer(context_.child.ask(to_line(request), limit), request.candidates.size() + 1);
        const double least = *std::min_element(times[0].begin(), times[0].end());
        reference_seconds_ = reference_seconds_ == 0 ? least : std::min(reference_seconds_, least);
        return times;
    } catch (const ChildFailure &) {
        if (context_.target.kind == TargetKind::cuda) {
            context_.child.stop();  // a fault leaves the GPU's context of that process unusable
        }
        throw;
    }
}

double KernelRunner::time_reference() { return median(time(std::vector<Candidate>{{reference_directives_, {}, reference_}}, 1).at(0)); }

std::vector<std::vector<double>> KernelRunner::time(std::span<const Candidate> candidates, int rounds) {
    if (reference_.empty()) {  // its time was known from records
        if (const Candidate reference = build(reference_directives_).get(); reference.plan.empty()) {
            throw ChildFailure("the default schedule could not be built: " + reference.measurement.failure);
        }
    }
    TimingRequest request{rounds, reference_, context_.values, sources_, {}};
    for (const Candidate &candidate : candidates) {
        if (candidate.directives != reference_directives_) {
            request.candidates.push_back(candidate.plan);
        }
    }
    const std::vector<std::vector<double>> times = ask(request);
    std::vector<std::vector<double>> result;
    for (std::size_t c = 0, next = 1; c < candidates.size(); ++c) {
        std::vector<double> seconds = times[candidates[c].directives == reference_directives_ ? 0 : next++];
        // Every round has the reference in it: what slows both is the machine's, not the candidate's.
        for (std::size_t r = 0; r < seconds.size(); ++r) {
            seconds[r] *= reference_seconds_ / times[0][r];
        }
        result.push_back(std::move(seconds));
    }
    return result;
}

}  // namespace tilewright
