#include "lowering/check_options.h"

#include "dsl/error.h"

namespace tilewright {

void check_options(const Options &options) {
    if (!options.target.empty() && options.target != "cpu" && options.target != "cuda") {
        user_error("target \"{}\": there is no such target; use cpu or cuda", options.target);
    }
    if (options.jobs < 0) {
        user_error("--jobs {}: give a number of 1 or more", options.jobs);
    }
    if (options.engines != "all" && options.engines != "none" && options.engines != "cublaslt") {
        user_error("engines \"{}\": use all, none or cublaslt", options.engines);
    }
    if (options.fusion != "search" && options.fusion != "max" && options.fusion != "none") {
        user_error("fusion \"{}\": use search, max or none", options.fusion);
    }
}

}  // namespace tilewright
