#include "apps/api/model.h"

#include <spdlog/spdlog.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/archive.h"
#include "dsl/capture/fingerprint.h"
#include "dsl/error.h"
#include "lowering/check_options.h"
#include "lowering/pipeline.h"
#include "runtime/digest.h"
#include "runtime/plan_archive.h"
#include "runtime/plan_cache.h"

namespace tilewright {
namespace {

/// Everything that the plan depends on.
std::string cache_key(const std::string &archive, const Options &options, const Target &target) {
    Digest digest;
    digest.add(build_id()).add(archive_fingerprint(archive)).add(target.to_string()).add(target.device);
    digest.add(options.schedule.empty() ? "no schedule" : "schedule " + read_file(options.schedule));
    digest.add(options.engines).add(options.fusion).add(options.strict ? "strict" : "").add(options.deterministic ? "deterministic" : "");
    return digest.hex();
}

std::unique_ptr<Executor> make_executor(Plan plan) {
    return plan.target == TargetKind::cpu ? make_cpu_executor(std::move(plan)) : make_cuda_executor(std::move(plan));
}

}  // namespace

Model Model::load(const std::string &archive, const Options &options) {
    check_options(options);
    Model model;
    const PlanCache cache = options.cache ? PlanCache::standard() : PlanCache("");
    const std::string key = cache_key(archive, options, choose_target(options));
    if (std::optional<Plan> plan = cache.find(key)) {
        if (attach_weights(*plan, read_archive(archive))) {
            model.from_cache_ = true;
            model.executor_ = make_executor(std::move(*plan));
            return model;
        }
        spdlog::debug("the cached plan of {} does not fit its weights; it is built again", archive);
    }
    Plan plan = compile_archive(archive, options).plan;
    cache.store(key, plan);
    model.executor_ = make_executor(std::move(plan));
    return model;
}

}  // namespace tilewright
