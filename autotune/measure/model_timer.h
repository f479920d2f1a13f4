// Times a whole model under several schedule files: what the measuring child does with a request for a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/options.h"

namespace tilewright {

struct ModelTimingRequest {
    int rounds = 1;
    std::string archive;
    Options options;                     ///< target, architecture, strict, deterministic, fusion, inputs and sizes count
    std::vector<std::string> schedules;  ///< files
};
/// As one line, and back. UserError for a line that is none.
std::string to_line(const ModelTimingRequest &request);
bool is_model_request(const std::string &line);
ModelTimingRequest parse_model_request(const std::string &line);

/// Seconds of a run by round of each schedule; in a round all run in turn. On a GPU each run replays a graph, from a cold cache.
std::vector<std::vector<double>> time_model(const ModelTimingRequest &request);

}  // namespace tilewright
