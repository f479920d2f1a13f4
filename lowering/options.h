// What a user may choose when a model is compiled, tuned and run: one struct for the command, the library and Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tilewright {

struct Options {
    std::string target;             ///< "cpu" or "cuda"; empty: cuda where a GPU answers, else cpu
    std::string architecture;       ///< "sm_90a"; empty: the GPU's own, or sm_90a where none answers
    std::string schedule;           ///< path of a schedule file; empty: default schedules
    int jobs = 0;                   ///< kernels compiled at once; 0: as many as the machine has cores
    bool strict = false;            ///< round every step as eager does
    bool deterministic = false;     ///< the same bits on every run
    bool cache = true;              ///< keep compiled plans in $XDG_CACHE_HOME/tilewright
    std::string engines = "all";    ///< "all", "none", or a list: "cublaslt,cudnn"
    std::string fusion = "search";  ///< "search", "max", "none"

    // Of autotune alone.
    std::string out;                            ///< schedule file to write; empty: beside the archive, MODEL.TARGET.schedule
    std::string records;                        ///< tuning records; empty: records.sqlite in the cache folder
    double budget = 0;                          ///< seconds; 0: until the search is done
    std::string inputs;                         ///< safetensors file with in0…; empty: drawn
    std::map<std::string, std::int64_t> sizes;  ///< values of symbolic sizes to tune for
};

}  // namespace tilewright
