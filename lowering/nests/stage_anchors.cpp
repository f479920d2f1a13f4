#include "lowering/nests/stage_anchors.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/nest.h"
#include "lowering/nests/stage_numbers.h"

namespace tilewright {

namespace hi = Halide::Internal;

const ScheduledStage &scheduled_stage(const ScheduledKernel &schedule, const Stage &stage) {
    const ScheduledStage *found = schedule.find(stage.name());
    internal_assert(found, "stage {} has no schedule", stage.name());
    return *found;
}

namespace {

class AnchorFinder {
public:
    AnchorFinder(const Algorithm &algorithm, const ScheduledKernel &schedule) : algorithm_(algorithm), schedule_(schedule) {}

    /// The root stage whose loops compute this one; -1 where it is inlined.
    int anchor_of(int index, int depth) const {
        const ScheduledStage &s = scheduled_stage(schedule_, algorithm_.stages[index]);
        const ScheduleFlag *with = s.find_flag("compute_with");
        if (depth > static_cast<int>(algorithm_.stages.size())) {
            schedule_error(with ? with->directive.location : s.at_location, s.name,
                           fmt::format("stage '{}' and others are computed in each other's loops, in a circle", s.name),
                           "remove one of their directives compute_at and compute_with");
        }
        if (with) {
            const int other = stage_index(algorithm_, with->word(0));
            const int anchor = other < 0 ? -1 : anchor_of(other, depth + 1);
            if (anchor < 0) {
                schedule_error(with->directive.location, with->directive.to_string(),
                               fmt::format("stage '{}' is inlined and has no loops", with->word(0)), "name a stage that has loops");
            }
            return anchor;
        }
        switch (s.compute) {
            case ComputeLevel::root:
                return index;
            case ComputeLevel::inlined:
                return -1;
            case ComputeLevel::at: {
                const int at = stage_index(algorithm_, s.at_stage);
                const int anchor = at < 0 ? -1 : anchor_of(at, depth + 1);
                if (anchor < 0) {
                    schedule_error(s.at_location, s.name, fmt::format("it is computed at '{}', which is inlined", s.at_stage),
                                   "name the stage that has the loops");
                }
                return anchor;
            }
            case ComputeLevel::unspecified:
                return is_output(index) || !is_pure(index) ? index : -1;
        }
        return -1;
    }

private:
    bool is_output(int index) const {
        return std::any_of(algorithm_.outputs.begin(), algorithm_.outputs.end(),
                           [&](const TensorOutput &o) { return o.stage == algorithm_.stages[index].name(); });
    }
    bool is_pure(int index) const {
        const hi::Function f = algorithm_.stages[index].func.function();
        return !f.has_update_definition() && !f.has_extern_definition();
    }

    const Algorithm &algorithm_;
    const ScheduledKernel &schedule_;
};

/// Anchors of other nests whose results stage `index` reads, through inlined stages.
void collect_needs(const Algorithm &algorithm, const StageNumbers &numbers, const std::vector<int> &anchors, int index, int anchor,
                   std::set<int> &needs, std::set<int> &seen) {
    if (!seen.insert(index).second) {
        return;
    }
    for (const Read &read : reads_of(algorithm.stages[index])) {
        const int producer = read.from_input ? -1 : numbers[read.producer];
        if (producer < 0 || producer == index) {
            continue;
        }
        if (anchors[producer] < 0) {
            collect_needs(algorithm, numbers, anchors, producer, anchor, needs, seen);
        } else if (anchors[producer] != anchor) {
            needs.insert(anchors[producer]);
        }
    }
}

}  // namespace

std::vector<int> stage_anchors(const Algorithm &algorithm, const ScheduledKernel &schedule) {
    const AnchorFinder finder(algorithm, schedule);
    std::vector<int> anchors;
    for (int i = 0; i < static_cast<int>(algorithm.stages.size()); ++i) {
        anchors.push_back(finder.anchor_of(i, 0));
    }
    return anchors;
}

std::vector<int> order_of_nests(const Algorithm &algorithm, const ScheduledKernel &schedule, const std::vector<int> &anchors) {
    const StageNumbers numbers(algorithm);
    std::map<int, std::set<int>> needs;
    for (int i = 0; i < static_cast<int>(anchors.size()); ++i) {
        if (anchors[i] >= 0) {
            std::set<int> seen;
            collect_needs(algorithm, numbers, anchors, i, anchors[i], needs[anchors[i]], seen);
        }
    }
    std::vector<int> order;
    std::set<int> done;
    while (order.size() < needs.size()) {
        int next = -1;
        for (const auto &[anchor, before] : needs) {
            const bool ready = std::all_of(before.begin(), before.end(), [&](int b) { return done.count(b) > 0; });
            if (!done.count(anchor) && ready) {
                next = anchor;
                break;
            }
        }
        if (next < 0) {
            const int blocked = std::find_if(needs.begin(), needs.end(), [&](const auto &n) { return !done.count(n.first); })->first;
            schedule_error(scheduled_stage(schedule, algorithm.stages[blocked]).at_location,
                           fmt::format("kernel {}: {}", schedule.kernel, algorithm.stages[blocked].name()),
                           "its loops and those of another stage need each other's results",
                           "compute one of the stages between them at the root");
        }
        done.insert(next);
        order.push_back(next);
    }
    return order;
}

}  // namespace tilewright
