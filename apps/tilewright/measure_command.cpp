// The measuring child of `autotune`: reads requests from standard input, answers each with a line. What crashes here ends this process alone.
//
//     time ROUNDS REFERENCE.plan CANDIDATE.plan…      (separated by tabs)
//     -> ok 1.2e-05,1.3e-05 2.1e-05,2.0e-05           seconds of each candidate, by round
//     -> failed REASON
#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>

#include "apps/tilewright/command.h"
#include "autotune/compare.h"
#include "autotune/draw_inputs.h"
#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "runtime/cuda_timer.h"
#include "runtime/host_memory.h"
#include "runtime/memory_plan.h"
#include "runtime/outputs.h"
#include "runtime/plan_archive.h"

namespace tilewright {
namespace {

constexpr double round_seconds = 0.02;  ///< of runs that one CPU time is the least of
constexpr int most_repeats = 100;
constexpr double warm_seconds = 0.005;  ///< of runs on a GPU before those that count

Plan read_plan(const std::string &path) {
    const std::string bytes = read_file(path, std::size_t{4} << 30);
    std::optional<Plan> plan = load_plan(std::as_bytes(std::span(bytes)));
    if (!plan) {
        user_error("{} is no plan of this build", path);
    }
    return std::move(*plan);
}

/// One candidate, loaded, with its tensors.
class Loaded {
public:
    virtual ~Loaded() = default;
    virtual std::vector<HostTensor> outputs() = 0;
};

class CpuCandidate final : public Loaded {
public:
    CpuCandidate(Plan plan, const std::vector<HostTensor> &inputs) : executor_(make_cpu_executor(std::move(plan))), inputs_(inputs) {}
    std::vector<HostTensor> outputs() override { return executor_->run_host(inputs_); }
    double time() {
        if (repeats_ == 0) {
            const double once = run(1);
            repeats_ = static_cast<int>(std::clamp(round_seconds / std::max(once, 1e-9), 1.0, static_cast<double>(most_repeats)));
        }
        return run(repeats_);
    }

private:
    double run(int repeats) {
        double seconds = 0;
        for (const double step : executor_->profile(inputs_, repeats)) {
            seconds += step;
        }
        return seconds;
    }
    std::unique_ptr<Executor> executor_;
    const std::vector<HostTensor> &inputs_;
    int repeats_ = 0;
};

/// Tensors in device memory; outputs are filled with NaN before the run whose values are looked at.
class CudaCandidate final : public Loaded {
public:
    CudaCandidate(Plan plan, const std::vector<HostTensor> &inputs) : executor_(make_cuda_executor(std::move(plan))) {
        for (const HostTensor &input : inputs) {
            Tensor tensor = to_tensor(input);
            place(tensor);
            if (memory_.back().bytes() > 0) {
                cuda_check(CudaDriver::get().copy_to_device(memory_.back().address(), input.data(), static_cast<std::size_t>(memory_.back().bytes()),
                                                            stream_.get()),
                           "copying an input");
            }
            inputs_.push_back(tensor);
        }
        for (const OutputPlace &output : describe_outputs(executor_->plan(), inputs_)) {
            Tensor tensor{output.dtype, output.sizes, output.strides, nullptr, nullptr};
            place(tensor);
            if (memory_.back().bytes() > 0) {
                cuda_check(CudaDriver::get().memset8(memory_.back().address(), 0xff, static_cast<std::size_t>(memory_.back().bytes()), stream_.get()),
                           "clearing an output");
            }
            outputs_.push_back(tensor);
        }
        stream_.synchronize();
    }

    std::vector<HostTensor> outputs() override {
        executor_->run_into(inputs_, outputs_, nullptr);
        std::vector<HostTensor> values;
        for (const Tensor &output : outputs_) {
            const Tensor host = allocate_tensor(output.dtype, output.sizes, output.strides);
            if (const std::int64_t bytes = span_bytes(output.dtype, output.sizes, output.strides); bytes > 0) {
                cuda_check(CudaDriver::get().copy_to_host(host.data, reinterpret_cast<CUdeviceptr>(output.data), static_cast<std::size_t>(bytes),
                                                          stream_.get()),
                           "copying an output");
                stream_.synchronize();
            }
            values.push_back(to_host_tensor(host));
        }
        return values;
    }
    void enqueue(CUstream stream) { executor_->run_into(inputs_, outputs_, stream); }

private:
    void place(Tensor &tensor) {
        memory_.emplace_back(span_bytes(tensor.dtype, tensor.sizes, tensor.strides));
        tensor.data = memory_.back().data();
    }
    std::unique_ptr<Executor> executor_;
    CudaStream stream_;
    std::vector<DeviceMemory> memory_;
    std::vector<Tensor> inputs_, outputs_;
};

class Measurer {
public:
    std::vector<std::vector<double>> time(int rounds, const std::string &reference, const std::vector<std::string> &candidates) {
        use_reference(reference);
        if (target_ == TargetKind::cpu) {
            return time_cpu(rounds, candidates);
        }
        return time_cuda(rounds, candidates);
    }

private:
    void use_reference(const std::string &path) {
        if (path == reference_) {
            return;
        }
        reference_.clear();
        Plan plan = read_plan(path);
        target_ = plan.target;
        inputs_ = draw_inputs(plan, {});
        if (target_ == TargetKind::cpu) {
            expected_ = CpuCandidate(std::move(plan), inputs_).outputs();
        } else {
            expected_ = CudaCandidate(std::move(plan), inputs_).outputs();
        }
        reference_ = path;
    }

    void check(Loaded &candidate) {
        const std::vector<HostTensor> outputs = candidate.outputs();
        for (std::size_t i = 0; i < expected_.size(); ++i) {
            if (const Comparison comparison = compare(expected_[i], outputs.at(i)); comparison.mismatch) {
                user_error("output {} differs from the default schedule's at {}", i, *comparison.mismatch);
            }
        }
    }

    template<typename Candidate>
    std::vector<std::unique_ptr<Candidate>> load(const std::vector<std::string> &paths) {
        std::vector<std::unique_ptr<Candidate>> loaded;
        for (const std::string &path : paths) {
            loaded.push_back(std::make_unique<Candidate>(read_plan(path), inputs_));
            check(*loaded.back());
        }
        return loaded;
    }

    std::vector<std::vector<double>> time_cpu(int rounds, const std::vector<std::string> &paths) {
        const auto candidates = load<CpuCandidate>(paths);
        std::vector<std::vector<double>> seconds(candidates.size());
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t c = 0; c < candidates.size(); ++c) {
                seconds[c].push_back(candidates[c]->time());
            }
        }
        return seconds;
    }

    std::vector<std::vector<double>> time_cuda(int rounds, const std::vector<std::string> &paths) {
        const auto candidates = load<CudaCandidate>(paths);
        if (!timer_) {
            timer_ = std::make_unique<CudaTimer>();
        }
        std::vector<Enqueue> enqueue;
        for (const auto &candidate : candidates) {
            enqueue.emplace_back([&candidate](CUstream stream) { candidate->enqueue(stream); });
        }
        std::vector<std::vector<double>> seconds(candidates.size());
        for (int round = 0; round < rounds; ++round) {
            const std::vector<double> medians = timer_->time(enqueue, {.warm_seconds = warm_seconds});
            for (std::size_t c = 0; c < candidates.size(); ++c) {
                seconds[c].push_back(1e-6 * medians[c]);
            }
        }
        return seconds;
    }

    std::string reference_;
    TargetKind target_ = TargetKind::cpu;
    std::vector<HostTensor> inputs_, expected_;
    std::unique_ptr<CudaTimer> timer_;
};

std::string answer(Measurer &measurer, const std::string &request) {
    std::vector<std::string> words;
    std::istringstream text(request);
    for (std::string word; std::getline(text, word, '\t');) {
        words.push_back(word);
    }
    try {
        if (words.size() < 4 || words[0] != "time") {
            user_error("\"{}\" is no request", request);
        }
        std::string line = "ok";
        for (const std::vector<double> &times : measurer.time(std::stoi(words[1]), words[2], {words.begin() + 3, words.end()})) {
            line += fmt::format(" {:.9g}", fmt::join(times, ","));
        }
        return line;
    } catch (const std::exception &error) {
        std::string reason = error.what();
        std::replace(reason.begin(), reason.end(), '\n', ' ');
        return "failed " + reason;
    }
}

}  // namespace

int measure_command(const Command &, const Arguments &) {
    Measurer measurer;
    for (std::string request; std::getline(std::cin, request);) {
        std::cout << answer(measurer, request) << std::endl;
    }
    return success;
}

}  // namespace tilewright
