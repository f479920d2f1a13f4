#include "autotune/kernel_search.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <thread>

#include "autotune/candidates.h"
#include "dsl/algorithm/hash.h"
#include "dsl/error.h"
#include "lowering/assemble_plan.h"
#include "lowering/compile_kernels.h"
#include "runtime/digest.h"

namespace tilewright {
namespace {

constexpr int rounds = 3;             ///< of single moves
constexpr double worth_it = 0.98;     ///< of the default's time: a schedule that gains less is noise, and the default is easier to read

struct Built {
    std::optional<Plan> plan;
    std::string failure;
};

class KernelSearch {
public:
    KernelSearch(const Kernel &kernel, SearchContext &context) : kernel_(kernel), context_(context), identity_(kernel_key(kernel)) {}

    KernelResult run(bool climb) {
        std::vector<Directives> batch = first_candidates(kernel_, context_.target, context_.options);
        internal_assert(!batch.empty(), "the default schedule of kernel \"{}\" does not fit it", kernel_.name);
        default_ = batch.front();
        evaluate(batch);
        for (int round = 0; climb && round < rounds && default_known(); ++round) {
            const double before = best_seconds_;
            evaluate(neighbours(kernel_, best_, context_.target));
            if (best_seconds_ >= worth_it * before) {
                break;
            }
        }
        return result();
    }

private:
    bool default_known() const { return default_seconds_ > 0; }

    std::string key(const Directives &directives) const {
        return Digest().add(build_id()).add(context_.target.to_string()).add(context_.target.device)
            .add(std::to_string(std::thread::hardware_concurrency())).add(identity_).add(sizes()).add(print(directives)).hex();
    }
    std::string sizes() const {
        std::string text;
        for (const auto &[symbol, value] : context_.measure.sizes) {
            text += fmt::format("{}={} ", symbol, value);
        }
        return text;
    }

    void note(const Directives &directives, const TuningRecord &record) {
        const bool is_default = directives == default_;
        if (!record.failure.empty()) {
            ++outcome_.failures;
            outcome_.remark = is_default ? record.failure : outcome_.remark;
            return;
        }
        ++outcome_.candidates;
        if (is_default) {
            default_seconds_ = record.seconds;
        }
        if (best_seconds_ == 0 || record.seconds < best_seconds_) {
            best_seconds_ = record.seconds;
            best_ = directives;
        }
    }

    Built build(const Directives &directives) const {
        try {
            const CompiledKernel compiled = compile_kernel(kernel_, directives, context_.target);
            return {plan_of_kernel(context_.target.kind, context_.target.device, kernel_, compiled), ""};
        } catch (const Halide::Error &error) {
            return {std::nullopt, error.what()};
        } catch (const std::exception &error) {
            return {std::nullopt, error.what()};
        }
    }

    std::vector<Built> build_all(const std::vector<Directives> &batch) const {
        std::vector<Built> built(batch.size());
        const int jobs = context_.options.jobs;
        boost::asio::thread_pool pool(jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency()));
        for (std::size_t i = 0; i < batch.size(); ++i) {
            boost::asio::post(pool, [&, i] {
                if (i == 0 || !context_.out_of_time()) {
                    built[i] = build(batch[i]);
                } else {
                    built[i].failure = "out of time";
                }
            });
        }
        pool.join();
        return built;
    }

    /// Looks the candidates up in the records, builds and measures those that are not there.
    void evaluate(const std::vector<Directives> &candidates) {
        std::vector<Directives> unknown;
        for (const Directives &directives : candidates) {
            if (const std::optional<TuningRecord> record = context_.records.find(key(directives))) {
                note(directives, *record);
            } else {
                unknown.push_back(directives);
            }
        }
        if (unknown.empty() || context_.only_records || context_.out_of_time()) {
            return;
        }
        if (unknown.front() != default_) {
            unknown.insert(unknown.begin(), default_);  // the reference for the values
        }
        const std::vector<Built> built = build_all(unknown);
        std::vector<Plan> plans;
        std::vector<std::size_t> index;
        int failed = 0;
        for (std::size_t i = 0; i < built.size(); ++i) {
            if (built[i].plan) {
                plans.push_back(*built[i].plan);
                index.push_back(i);
            } else if (built[i].failure != "out of time") {
                ++failed;
                remember(unknown[i], {0, built[i].failure});
            }
        }
        report(static_cast<int>(plans.size()), failed, 0);
        if (!built.front().plan) {
            return;
        }
        const std::vector<TuningRecord> records = measure(plans, context_.measure);
        for (std::size_t i = 0; i < records.size(); ++i) {
            const bool stopped = context_.out_of_time() && !records[i].failure.empty();  // the user's signal reaches the child as well
            const bool known = unknown[index[i]] == default_ && default_known();
            if (!stopped && !known) {
                remember(unknown[index[i]], records[i]);
                ++context_.measured;
            }
        }
        report(static_cast<int>(plans.size()), failed, static_cast<int>(records.size()));
    }

    void remember(const Directives &directives, const TuningRecord &record) {
        context_.records.store(key(directives), kernel_.name + " " + kernel_.hash.to_string() + "\n" + print(directives), record);
        note(directives, record);
    }

    void report(int built, int failed, int timed) {
        if (context_.progress) {
            context_.progress(built, failed, timed, best_seconds_);
        }
    }

    KernelResult result() {
        if (!default_known() || best_seconds_ >= worth_it * default_seconds_) {
            best_ = default_;
            best_seconds_ = default_seconds_;
        }
        outcome_.kernel = kernel_.name;
        outcome_.default_seconds = default_seconds_;
        outcome_.best_seconds = best_seconds_;
        return {best_, outcome_};
    }

    const Kernel &kernel_;
    SearchContext &context_;
    std::string identity_;
    Directives default_, best_;
    double default_seconds_ = 0, best_seconds_ = 0;
    KernelOutcome outcome_;
};

}  // namespace

KernelResult search_kernel(const Kernel &kernel, SearchContext &context, bool climb) { return KernelSearch(kernel, context).run(climb); }

std::string kernel_key(const Kernel &kernel) {
    return kernel.hash.to_string() + " " + to_string(extent_signature(kernel.algorithm));
}

}  // namespace tilewright
