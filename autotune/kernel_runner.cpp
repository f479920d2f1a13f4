#include "autotune/kernel_runner.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdlib.h>

#include "autotune/estimator.h"
#include "autotune/kernel_plan.h"
#include "autotune/measurer.h"
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

/// "ok a,b c,d": seconds of each candidate by round; or "failed REASON", which is thrown.
std::vector<std::vector<double>> parse_answer(const std::string &answer, std::size_t count) {
    if (answer.starts_with("failed ")) {
        throw ChildFailure(answer.substr(7));
    }
    std::istringstream words(answer);
    std::string word;
    words >> word;
    std::vector<std::vector<double>> rounds;
    for (std::string list; word == "ok" && words >> list;) {
        std::vector<double> &times = rounds.emplace_back();
        std::istringstream items(list);
        for (std::string item; std::getline(items, item, ',');) {
            times.push_back(std::strtod(item.c_str(), nullptr));
        }
    }
    if (rounds.size() != count) {
        throw ChildFailure("answered \"" + answer + "\"");
    }
    return rounds;
}

}  // namespace

PlanFolder::PlanFolder() {
    path_ = (std::filesystem::temp_directory_path() / "tilewright-tune-XXXXXX").string();
    if (!::mkdtemp(path_.data())) {
        user_error("no temporary folder can be made in {}; free space there or set TMPDIR", std::filesystem::temp_directory_path().string());
    }
}

PlanFolder::~PlanFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string PlanFolder::next() { return fmt::format("{}/{}.plan", path_, files_++); }

Candidate KernelRunner::build_one(const Directives &directives, const std::string &path) const {
    Candidate candidate{directives, {}, ""};
    try {
        const CompiledKernel compiled = compile_kernel(kernel_, directives, context_.target);
        for (const CodeObject &code : compiled.code) {
            candidate.measurement.registers = std::max(candidate.measurement.registers, code.registers);
            candidate.measurement.spill_bytes += code.spill_stores + code.spill_loads;
            candidate.measurement.shared_bytes = std::max(candidate.measurement.shared_bytes, code.shared_bytes);
        }
        const std::vector<std::byte> bytes = save_plan(kernel_plan(kernel_, compiled, fixed_, context_.symbols, context_.target));
        write_file_atomically(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
        candidate.plan = path;
    } catch (const std::exception &error) {
        candidate.measurement.failure = one_line(error.what());
    }
    return candidate;
}

Candidate KernelRunner::build_reference() {
    Candidate candidate = build_one(reference_directives_, context_.folder.next());
    reference_ = candidate.plan;
    return candidate;
}

std::vector<Candidate> build_references(const std::vector<KernelRunner *> &runners, int jobs) {
    std::vector<Candidate> built(runners.size());
    boost::asio::thread_pool pool(static_cast<std::size_t>(std::max(1, jobs)));
    for (std::size_t i = 0; i < runners.size(); ++i) {
        boost::asio::post(pool, [&, i] { built[i] = runners[i]->build_reference(); });
    }
    pool.join();
    return built;
}

std::vector<Candidate> KernelRunner::build(std::vector<Directives> candidates) {
    std::vector<Candidate> built(candidates.size());
    if (candidates.size() == 1) {
        built[0] = build_one(candidates[0], context_.folder.next());
    } else {
        boost::asio::thread_pool pool(static_cast<std::size_t>(std::max(1, context_.jobs)));
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            boost::asio::post(pool, [&, i, path = context_.folder.next()] { built[i] = build_one(candidates[i], path); });
        }
        pool.join();
    }
    for (const Candidate &candidate : built) {
        if (reference_.empty() && candidate.directives == reference_directives_) {
            reference_ = candidate.plan;
        }
    }
    return built;
}

std::vector<std::vector<double>> KernelRunner::ask(const TimingRequest &request) {
    // A candidate that takes a hundred times as long as the default is given up.
    const auto plans = static_cast<double>(request.candidates.size() + 1);
    const double limit = (context_.child.is_running() ? 20 : start_seconds) + (20 * request.rounds * plans + 100) * reference_seconds_;
    try {
        std::vector<std::vector<double>> times = parse_answer(context_.child.ask(to_line(request), limit), request.candidates.size() + 1);
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
        if (const Candidate reference = build_reference(); reference.plan.empty()) {
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
