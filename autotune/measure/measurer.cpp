#include "autotune/measure/measurer.h"

#include <cstdlib>

#include "autotune/measure/request_words.h"
#include "dsl/error.h"

namespace tilewright {

std::string to_line(const TimingRequest &request) {
    std::string line =
        fmt::format("time\t{}\t{}\t{}\t{}", request.rounds, request.reference, request.values, fmt::join(request.inputs, ","));
    for (const std::string &candidate : request.candidates) {
        line += "\t" + candidate;
    }
    return line;
}

TimingRequest parse_timing_request(const std::string &line) {
    const std::vector<std::string> words = split_words(line, '\t');
    if (words.size() < 5 || words[0] != "time") {
        user_error("\"{}\" is no request", line);
    }
    return {std::atoi(words[1].c_str()), words[2], words[3], split_words(words[4], ','), {words.begin() + 5, words.end()}};
}

Measurer::Measurer() = default;
Measurer::~Measurer() = default;

std::vector<std::vector<double>> Measurer::time(const TimingRequest &request) {
    if (!timer_ || timer_->reference() != request.reference) {
        timer_.reset();
        Plan plan = read_plan(request.reference);
        timer_ =
            plan.target == TargetKind::cpu ? make_cpu_plan_timer(std::move(plan), request) : make_cuda_plan_timer(std::move(plan), request);
    }
    return timer_->time(request);
}

}  // namespace tilewright
