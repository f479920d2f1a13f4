#include "lowering/check_options.h"

#include <algorithm>
#include <sstream>

#include "dsl/error.h"
#include "lowering/cuda/engine.h"

namespace tilewright {

/// Whether it is all, none, or names of libraries between commas.
static bool are_engines(const std::string &text) {
    if (text == "all" || text == "none") {
        return true;
    }
    std::istringstream list(text + ",");
    for (std::string one; std::getline(list, one, ',');) {
        const auto is_this = [&](EngineLibrary library) { return name(library) == one; };
        if (std::none_of(std::begin(engine_libraries), std::end(engine_libraries), is_this)) {
            return false;
        }
    }
    return true;
}

void check_options(const Options &options) {
    if (!options.target.empty() && options.target != "cpu" && options.target != "cuda") {
        user_error("target \"{}\": there is no such target; use cpu or cuda", options.target);
    }
    if (options.jobs < 0) {
        user_error("--jobs {}: give a number of 1 or more", options.jobs);
    }
    if (!are_engines(options.engines)) {
        user_error("engines \"{}\": use all, none, or a list of cublaslt and cudnn, as cublaslt,cudnn", options.engines);
    }
    if (options.fusion != "search" && options.fusion != "max" && options.fusion != "none") {
        user_error("fusion \"{}\": use search, max or none", options.fusion);
    }
}

}  // namespace tilewright
