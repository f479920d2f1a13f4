// The measuring child of `autotune`: reads requests from standard input (autotune/measure/measurer.h and model_timer.h,
// autotune/search/compiling_children.h), answers each with a line. What crashes here ends
// this process alone.
//
//     -> ok 1.2e-05,1.3e-05 2.1e-05,2.0e-05           seconds of the reference and of each candidate, by round
//     -> failed REASON
#include <algorithm>
#include <iostream>

#include "apps/tilewright/command.h"
#include "autotune/measure/measurer.h"
#include "autotune/measure/model_timer.h"
#include "autotune/search/compiling_children.h"
#include "dsl/error.h"

namespace tilewright {
namespace {

std::string answer(Measurer &measurer, const std::string &request) {
    try {
        std::string line = "ok";
        if (is_compile_request(request)) {
            answer_compile_request(request);
            return line;
        }
        for (const std::vector<double> &times :
             is_model_request(request) ? time_model(parse_model_request(request)) : measurer.time(parse_timing_request(request))) {
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
