#include "lowering/cpu/tile_bounds.h"

#include <algorithm>
#include <optional>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"

namespace tilewright {

namespace hi = Halide::Internal;

namespace {

/// Name of the reader's variable at which it reads each argument of the producer, where that is one variable.
using Places = std::vector<std::optional<std::string>>;

/// `inner` names arguments of a stage that stands at the places `outer`.
Places through_reader(const Places &inner, const std::vector<std::string> &arguments, const Places &outer) {
    Places result;
    for (const std::optional<std::string> &name : inner) {
        const auto found = name ? std::find(arguments.begin(), arguments.end(), *name) : arguments.end();
        result.push_back(found == arguments.end() ? std::nullopt : outer[found - arguments.begin()]);
    }
    return result;
}

class PlaceOfReads {
public:
    PlaceOfReads(const Kernel &kernel, const std::string &producer) : kernel_(kernel), producer_(producer) {}

    /// Through stages of one expression. Nothing where the reader does not read the producer.
    std::optional<Places> in(const std::string &reader) {
        const Stage *stage = kernel_.algorithm.find_stage(reader);
        if (!stage) {
            return std::nullopt;
        }
        std::optional<Places> result;
        for (const Read &read : reads_of(*stage)) {
            if (read.producer == producer_) {
                merge(result, variables_at(read.indices));
            } else if (const Stage *through = kernel_.algorithm.find_stage(read.producer);
                       through && !through->func.has_update_definition() && !through->func.is_extern()) {
                if (const std::optional<Places> inner = in(read.producer)) {
                    merge(result, mapped(*inner, through->func.function().args(), read.indices));
                }
            }
        }
        return result;
    }

private:
    static Places variables_at(const std::vector<Halide::Expr> &indices) {
        Places places;
        for (const Halide::Expr &index : indices) {
            const auto *variable = index.as<hi::Variable>();
            places.push_back(variable ? std::optional(variable->name) : std::nullopt);
        }
        return places;
    }

    static Places mapped(const Places &inner, const std::vector<std::string> &arguments, const std::vector<Halide::Expr> &indices) {
        return through_reader(inner, arguments, variables_at(indices));
    }

    static void merge(std::optional<Places> &into, const Places &places) {
        if (!into) {
            into = places;
            return;
        }
        for (std::size_t i = 0; i < into->size(); i++) {
            if ((*into)[i] != places[i]) {
                (*into)[i].reset();
            }
        }
    }

    const Kernel &kernel_;
    const std::string &producer_;
};

/// Iterations of an axis's loops that stand inside position `level` of the loop order; nothing where that is not constant.
class InnerExtent {
public:
    InnerExtent(const ScheduledStage &place, int level) : place_(place), level_(level) {}

    std::optional<std::int64_t> of(int index) const {
        const LoopAxis &axis = place_.axes[index];
        if (axis.is_loop) {
            const auto at = std::find(place_.loop_order.begin(), place_.loop_order.end(), index) - place_.loop_order.begin();
            return at > level_ ? axis.extent.constant() : 1;
        }
        if (axis.children[1] < 0) {
            return std::nullopt;
        }
        const std::optional<std::int64_t> outer = of(axis.children[0]), inner = of(axis.children[1]);
        if (outer == 1) {
            return inner;
        }
        return outer && inner ? std::optional(*outer * *inner) : std::nullopt;
    }

private:
    const ScheduledStage &place_;
    int level_;
};

int position_of(const ScheduledStage &place, const std::string &loop) {
    for (std::size_t i = 0; i < place.loop_order.size(); i++) {
        if (place.axes[place.loop_order[i]].name == loop) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

bool accumulates_inside_reductions(const ScheduledStage &stage) {
    const int outside = loop_outside_reductions(stage);
    return std::any_of(stage.loop_order.begin() + (outside + 1), stage.loop_order.end(),
                       [&](int index) { return !stage.axes[index].reduction; });
}

/// A reduction whose loops over its value run inside its reduction loops.
bool folds_in_tiles(const Kernel &kernel, const ScheduledStage &scheduled) {
    const Stage *stage = kernel.algorithm.find_stage(scheduled.name);
    if (!stage || !stage->func.has_update_definition() || !accumulates_inside_reductions(scheduled)) {
        return false;
    }
    const std::optional<Fold> fold = match_fold(stage->func);
    return fold && fold->scan_axis < 0;
}

}  // namespace

int loop_outside_reductions(const ScheduledStage &stage) {
    const auto first =
        std::find_if(stage.loop_order.begin(), stage.loop_order.end(), [&](int index) { return stage.axes[index].reduction; });
    return static_cast<int>(first - stage.loop_order.begin()) - 1;
}

bool has_accumulator(const Kernel &kernel, const ScheduledStage &stage) {
    return stage.compute != ComputeLevel::at && folds_in_tiles(kernel, stage);
}

std::map<std::string, std::int64_t> tile_extents(const Kernel &kernel, const ScheduledKernel &scheduled, const ScheduledStage &stage) {
    std::map<std::string, std::int64_t> extents;
    if (has_accumulator(kernel, stage)) {
        const InnerExtent inner(stage, loop_outside_reductions(stage));
        for (std::size_t i = 0; i < stage.axes.size(); i++) {
            const LoopAxis &axis = stage.axes[i];
            if (axis.origin == LoopAxis::Origin::root && !axis.reduction) {
                if (const auto extent = inner.of(static_cast<int>(i))) {
                    extents[axis.name] = *extent;
                }
            }
        }
        return extents;
    }
    const ScheduledStage *place = stage.compute == ComputeLevel::at ? scheduled.find(stage.at_stage) : nullptr;
    const bool is_copy = !stage.copy_of.empty();
    if (!place || (!is_copy && !folds_in_tiles(kernel, stage))) {
        return extents;
    }
    // A copy is as large as what its reader needs of it, and the reader as what its own place does.
    std::optional<Places> places = PlaceOfReads(kernel, is_copy ? stage.copy_of : stage.name).in(is_copy ? stage.copy_for : stage.at_stage);
    if (places && is_copy && stage.copy_for != stage.at_stage) {
        const std::optional<Places> outer = PlaceOfReads(kernel, stage.copy_for).in(stage.at_stage);
        places = outer ? std::optional(through_reader(*places, kernel.algorithm.find_stage(stage.copy_for)->func.function().args(), *outer))
                       : std::nullopt;
    }
    if (!places) {
        return extents;
    }
    const InnerExtent inner(*place, position_of(*place, stage.at_axis));
    std::size_t argument = 0;
    for (const LoopAxis &axis : stage.axes) {
        if (axis.origin != LoopAxis::Origin::root || axis.reduction) {
            continue;
        }
        const std::optional<std::string> variable = argument < places->size() ? (*places)[argument] : std::nullopt;
        argument++;
        const int root = variable ? place->find_axis(*variable) : -1;
        if (root >= 0 && !place->axes[root].reduction) {
            if (const auto extent = inner.of(root)) {
                extents[axis.name] = *extent;
            }
        }
    }
    return extents;
}

}  // namespace tilewright
