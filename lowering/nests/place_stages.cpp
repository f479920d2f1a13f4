#include "lowering/nests/build_nest.h"
#include "lowering/nests/refuse_unserved.h"
#include "lowering/nests/sort_plan.h"
#include "lowering/nests/stage_anchors.h"

namespace tilewright {

Placement place_stages(const Kernel &kernel, const ScheduledKernel &schedule, const GpuFacts &) {
    refuse_unserved(schedule);
    check_sort_directives(kernel.algorithm, schedule);
    const Algorithm &algorithm = kernel.algorithm;
    const std::vector<int> anchors = stage_anchors(algorithm, schedule);
    Placement placement;
    placement.nest_of.assign(algorithm.stages.size(), -1);
    for (int anchor : order_of_nests(algorithm, schedule, anchors)) {
        const int index = static_cast<int>(placement.nests.size());
        placement.nests.push_back(build_nest(algorithm, schedule, anchors, anchor));
        placement.nest_of[anchor] = index;
        for (const Member &member : placement.nests.back().members) {
            if (anchors[member.stage] >= 0) {
                placement.nest_of[member.stage] = index;
            }
        }
    }
    return placement;
}

}  // namespace tilewright
