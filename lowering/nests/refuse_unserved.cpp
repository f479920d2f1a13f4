#include "lowering/nests/refuse_unserved.h"

#include <algorithm>
#include <set>
#include <string>

#include "dsl/error.h"

namespace tilewright {

void refuse_unserved(const ScheduledKernel &schedule) {
    const auto has_product = [](const ScheduledStage &s) { return s.find_flag("tensor_core") != nullptr; };
    if (std::any_of(schedule.stages.begin(), schedule.stages.end(), has_product)) {
        return;
    }
    static const std::set<std::string> unserved = {"stream",     "persistent",     "raster",     "pipeline",
                                                   "async_copy", "bulk_copy",      "multicast",  "swizzle",
                                                   "warpgroups", "producer_warps", "take_turns", "hide_exponentials"};
    for (const ScheduledStage &s : schedule.stages) {
        if (!s.partial_of.empty()) {
            schedule_error(s.at_location, s.partial_of, "rfactor makes a stage that has no launch of its own on a GPU",
                           "use split_blocks(axis, n)");
        }
        if (!s.copy_of.empty() && s.is_edited && (s.store_in != MemorySpace::shared || s.compute != ComputeLevel::at)) {
            schedule_error(s.at_location, s.name, "a copy is staged in shared memory where its reader walks along the terms",
                           "add compute_at(reader, axis) and store_in(shared), or remove it");
        }
        for (const ScheduleFlag &flag : s.flags) {
            const bool permutes_copy = flag.directive.name == "swizzle" && !s.copy_of.empty();
            const bool loads_ahead = flag.directive.name == "pipeline" && s.copy_of.empty();
            if (unserved.count(flag.directive.name) && !permutes_copy && !loads_ahead) {
                schedule_error(flag.directive.location, flag.directive.to_string(),
                               "it serves a product on the matrix unit, and this kernel has none",
                               "remove it, or give the product tensor_core(m, n, k)");
            }
        }
    }
}

}  // namespace tilewright
