#include "autotune/measure/model_timer.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "autotune/inputs/device_tensors.h"
#include "autotune/inputs/draw_inputs.h"
#include "autotune/measure/request_words.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "lowering/pipeline.h"
#include "runtime/cuda/timer.h"

namespace tilewright {
namespace {

constexpr double warm_seconds = 0.02;
constexpr double round_seconds = 0.15;  ///< after which a round adds no runs
constexpr int cpu_runs = 3;             ///< the least of which is a round's time

std::vector<HostTensor> inputs_for(const Plan &plan, const Options &options) {
    if (options.inputs.empty()) {
        return draw_inputs(plan, options.sizes);
    }
    std::map<std::string, HostTensor> named;
    for (auto &[name, tensor] : read_safetensors(options.inputs)) {
        named.emplace(name, std::move(tensor));
    }
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < plan.user_inputs.size(); ++i) {
        inputs.push_back(named.at("in" + std::to_string(i)));  // tuning_sizes() has looked
    }
    return inputs;
}

using Times = std::vector<std::vector<double>>;

Times time_on_cpu(const std::vector<std::unique_ptr<Executor>> &models, const std::vector<HostTensor> &inputs, int rounds) {
    Times seconds(models.size());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t m = 0; m < models.size(); ++m) {
            double least = 0;
            for (int run = 0; run < cpu_runs; ++run) {
                const auto start = std::chrono::steady_clock::now();
                models[m]->run_host(inputs);
                const double once = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                least = run == 0 ? once : std::min(least, once);
            }
            seconds[m].push_back(least);
        }
    }
    return seconds;
}

Times time_on_gpu(const std::vector<std::unique_ptr<Executor>> &models, const std::vector<HostTensor> &inputs, int rounds) {
    const CudaStream stream;
    DeviceTensors in(stream.get()), out(stream.get());
    for (const HostTensor &input : inputs) {
        in.upload(input);
    }
    for (const OutputPlace &place : describe_outputs(models[0]->plan(), in.tensors())) {
        out.clear(place);
    }
    stream.synchronize();
    std::vector<Enqueue> enqueue;
    for (const auto &model : models) {
        enqueue.emplace_back([&](CUstream on) { model->run_into(in.tensors(), out.tensors(), on); });
    }
    CudaTimer timer;
    Times seconds(models.size());
    for (int round = 0; round < rounds; ++round) {
        const std::vector<double> medians = timer.time(enqueue, {.warm_seconds = warm_seconds, .limit_seconds = round_seconds});
        for (std::size_t m = 0; m < models.size(); ++m) {
            seconds[m].push_back(1e-6 * medians[m]);
        }
    }
    return seconds;
}

}  // namespace

std::string to_line(const ModelTimingRequest &request) {
    const Options &options = request.options;
    std::vector<std::string> sizes;
    for (const auto &[symbol, value] : options.sizes) {
        sizes.push_back(fmt::format("{}={}", symbol, value));
    }
    std::string line =
        fmt::format("model\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", request.rounds, request.archive, options.target, options.architecture,
                    options.fusion, options.strict ? 1 : 0, options.deterministic ? 1 : 0, options.inputs, fmt::join(sizes, ","));
    for (const std::string &schedule : request.schedules) {
        line += "\t" + schedule;
    }
    return line;
}

bool is_model_request(const std::string &line) { return line.starts_with("model\t"); }

ModelTimingRequest parse_model_request(const std::string &line) {
    const std::vector<std::string> words = split_words(line, '\t');
    if (!is_model_request(line) || words.size() < 11) {
        user_error("\"{}\" is no request", line);
    }
    ModelTimingRequest request{std::atoi(words[1].c_str()), words[2], {}, {words.begin() + 10, words.end()}};
    Options &options = request.options;
    options.target = words[3];
    options.architecture = words[4];
    options.fusion = words[5];
    options.strict = words[6] == "1";
    options.deterministic = words[7] == "1";
    options.inputs = words[8];
    for (const std::string &size : split_words(words[9], ',')) {
        if (const std::size_t equals = size.find('='); equals != std::string::npos) {
            options.sizes[size.substr(0, equals)] = std::atoll(size.c_str() + equals + 1);
        }
    }
    return request;
}

std::vector<std::vector<double>> time_model(const ModelTimingRequest &request) {
    std::vector<std::unique_ptr<Executor>> models;
    for (const std::string &schedule : request.schedules) {
        Options options = request.options;
        options.schedule = schedule;
        Compilation compilation = compile_archive(request.archive, options);
        models.push_back(compilation.target.kind == TargetKind::cpu ? make_cpu_executor(std::move(compilation.plan))
                                                                    : make_cuda_executor(std::move(compilation.plan)));
    }
    const std::vector<HostTensor> inputs = inputs_for(models.at(0)->plan(), request.options);
    return models[0]->plan().target == TargetKind::cpu ? time_on_cpu(models, inputs, request.rounds)
                                                       : time_on_gpu(models, inputs, request.rounds);
}

}  // namespace tilewright
