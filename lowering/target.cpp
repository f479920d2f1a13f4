#include "lowering/target.h"

#include <algorithm>
#include <set>
#include <vector>

#include "dsl/error.h"
#include "lowering/cpu/compile.h"
#include "runtime/cuda/driver.h"

namespace tilewright {

std::string Target::to_string() const { return kind == TargetKind::cpu ? "cpu" : "cuda " + device; }

Target choose_target(const Options &options) {
    if (!options.target.empty() && options.target != "cpu" && options.target != "cuda") {
        user_error("there is no target \"{}\"; use cpu or cuda", options.target);
    }
    std::string why_not;
    const bool gpu = options.target != "cpu" && options.architecture.empty() && have_cuda_device(&why_not);
    if (options.target == "cpu" || (options.target.empty() && options.architecture.empty() && !gpu)) {
        return {TargetKind::cpu, cpu_features(), nullptr};
    }
    const std::string name = gpu ? cuda_device().name : options.architecture.empty() ? "sm_90a" : options.architecture;
    const GpuFacts *facts = &gpu_facts(name);
    if (gpu && facts->architecture != cuda_device().architecture) {
        facts = &gpu_facts(cuda_device().architecture);  // a GPU that the table does not know by name
    }
    const bool known = std::any_of(known_gpus().begin(), known_gpus().end(), [&](const GpuFacts &g) { return g.architecture == name; });
    if (!options.architecture.empty() && !known) {
        std::set<std::string> names;
        for (const GpuFacts &g : known_gpus()) {
            names.insert(g.architecture);
        }
        user_error("architecture \"{}\": there is no such architecture in the table of GPUs; it has {}", name, fmt::join(names, ", "));
    }
    return {TargetKind::cuda, gpu ? cuda_device().architecture : facts->architecture, facts};
}

}  // namespace tilewright
