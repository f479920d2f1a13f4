#include "lowering/nests/build_nest.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/axis_shifts.h"
#include "lowering/nests/axis_tree.h"
#include "lowering/nests/launch_shape.h"
#include "lowering/nests/match_axes.h"
#include "lowering/nests/placed_reads.h"
#include "lowering/nests/stage_anchors.h"
#include "lowering/nests/stage_numbers.h"
#include "lowering/nests/thread_conflicts.h"
#include "lowering/tile_ir/inward_tail.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class NestBuilder {
public:
    NestBuilder(const Algorithm &algorithm, const ScheduledKernel &schedule, const std::vector<int> &anchors, int anchor)
        : algorithm_(algorithm), numbers_(algorithm), schedule_(schedule), anchors_(anchors), matcher_(algorithm, nest_, roots_) {
        nest_.anchor = anchor;
    }

    Nest run() {
        const int anchor = nest_.anchor;
        const ScheduledStage &schedule = scheduled(anchor);
        const auto scan = scan_variable(stage(anchor));
        AxisTree tree = build_axis_tree(schedule, "", false);
        if (scan) {
            drop_reductions(tree);
        }
        nest_.axes = tree.axes;
        nest_.loops = tree.loops;
        nest_.guards = tree.guards;
        for (const auto &[name, range] : algorithm_.symbols) {
            nest_.ranges[name] = range;
        }
        add_ranges(nest_.axes);
        const Form form = classify(stage(anchor));
        if (form == Form::scatter || form == Form::sort) {
            return std::move(nest_);
        }
        Member first;
        first.stage = anchor;
        first.environment = roots_ = tree.roots;
        take(std::move(first));
        for (int i = static_cast<int>(algorithm_.stages.size()) - 1; i >= 0; --i) {
            const bool automatic = automatic_.count(i) > 0;
            if (i == anchor || (anchors_[i] != anchor && !automatic)) {
                continue;
            }
            take(place_member(i));
        }
        set_shifts(schedule);
        std::sort(nest_.members.begin(), nest_.members.end(), [](const Member &a, const Member &b) { return a.stage < b.stage; });
        refuse_moving_columns(nest_, algorithm_, schedule);
        refuse_thread_conflicts(nest_, algorithm_, schedule_);
        set_launch_shape(nest_, schedule, scan ? as_variable(roots_.at(scan->second)) : "");
        check_launch_directives(nest_, algorithm_, schedule_);
        return std::move(nest_);
    }

private:
    const Stage &stage(int index) const { return algorithm_.stages[index]; }
    const ScheduledStage &scheduled(int index) const { return scheduled_stage(schedule_, stage(index)); }

    void set_shifts(const ScheduledStage &schedule) {
        for (tile::Axis &axis : nest_.axes) {
            if (!axis.shift.defined() || tile::moves_inwards(axis)) {
                continue;
            }
            const ScheduleFlag *flag = schedule.find_flag("align", axis.name);
            axis.shift = flag ? axis_shift(algorithm_, nest_, reads_, axis.name, static_cast<int>(flag->number(1))) : Expr();
        }
    }
    void add_ranges(const std::vector<tile::Axis> &axes) {
        for (const tile::Axis &axis : axes) {
            nest_.ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(algorithm_.symbols).max - 1, 0)};
            for (const tile::Leaf &leaf : axis.leaves) {
                nest_.ranges[leaf.name] = {0, std::max<std::int64_t>(leaf.extent.bounds(algorithm_.symbols).max - 1, 0)};
            }
        }
    }

    static void drop_reductions(AxisTree &tree) {
        const auto is_dropped = [&](int axis) {
            return std::find(tree.reduction_axes.begin(), tree.reduction_axes.end(), tree.axes[axis].name) != tree.reduction_axes.end();
        };
        std::vector<int> moved(tree.axes.size(), -1);
        std::vector<tile::Axis> kept;
        for (int i = 0; i < static_cast<int>(tree.axes.size()); ++i) {
            if (!is_dropped(i)) {
                moved[i] = static_cast<int>(kept.size());
                kept.push_back(tree.axes[i]);
            }
        }
        std::vector<NestLoop> loops;
        for (NestLoop loop : tree.loops) {
            if (moved[loop.axis] >= 0) {
                loops.push_back({moved[loop.axis], loop.leaf});
            }
        }
        tree.axes = kept;
        tree.loops = loops;
    }

    void take(Member member) {
        const Stage &s = stage(member.stage);
        if (const auto scan = scan_variable(s)) {
            member.environment[scan->first] = member.environment.at(scan->second);
        }
        for (const std::string &name : s.func.function().args()) {
            Expr place = simplify_index(member.environment.at(name), nest_.ranges);
            member.environment[name] = place;
            member.places.push_back(place);
            for (const std::string &axis : variables_of(place)) {
                if (nest_.find_axis(axis)) {
                    member.axes.insert(axis);
                }
            }
        }
        for (const auto &[name, place] : member.environment) {
            for (const std::string &axis : variables_of(place)) {
                if (nest_.find_axis(axis) && !member.axes.count(axis)) {
                    member.reduction_axes.insert(axis);
                }
            }
        }
        const ScheduledStage &schedule = scheduled(member.stage);
        if (schedule.store_in == MemorySpace::shared && schedule.compute == ComputeLevel::at) {
            member.in_shared = true;
        }
        const std::set<std::string> axes = member.axes;
        std::set<std::string> all = axes;
        all.insert(member.reduction_axes.begin(), member.reduction_axes.end());
        for (const Expr &e : definitions_of(s)) {
            follow(e, member.environment, all, member.stage);
        }
        nest_.members.push_back(std::move(member));
    }

    /// Records what `e` reads, through inlined stages, with indices over the nest's axes.
    void follow(const Expr &e, const Substitution &environment, const std::set<std::string> &reader_axes, int reader) {
        for (const PlacedRead &read : direct_reads(e, environment, nest_.ranges)) {
            const int producer = numbers_[read.producer];
            if (producer == reader || !seen_.insert(read.key()).second) {
                continue;
            }
            reads_[read.producer].push_back(read);
            if (producer < 0 || (anchors_[producer] >= 0 && anchors_[producer] != nest_.anchor)) {
                continue;
            }
            if (anchors_[producer] == nest_.anchor || automatic_.count(producer)) {
                pending_[producer].push_back(read);
                continue;
            }
            std::set<std::string> axes;
            for (const Expr &index : read.indices) {
                for (const std::string &name : variables_of(index)) {
                    if (nest_.find_axis(name)) {
                        axes.insert(name);
                    }
                }
            }
            if (is_narrower(axes, reader_axes) && depends_on_member(producer)) {
                automatic_.insert(producer);
                pending_[producer].push_back(read);
                continue;
            }
            const Stage &inlined = stage(producer);
            Substitution inner;
            for (std::size_t i = 0; i < read.indices.size(); ++i) {
                inner[inlined.func.function().args()[i]] = read.indices[i];
            }
            for (const Expr &value : right_hand_sides(inlined)) {
                follow(value, inner, axes, producer);
            }
        }
    }

    static bool is_narrower(const std::set<std::string> &axes, const std::set<std::string> &of) {
        return axes.size() < of.size() && std::includes(of.begin(), of.end(), axes.begin(), axes.end());
    }

    /// Whether an inlined stage is computed from a value that this nest keeps (a statistic of the row): then it is worth keeping once.
    bool depends_on_member(int index) {
        auto known = depends_.find({nest_.anchor, index});
        if (known != depends_.end()) {
            return known->second;
        }
        bool result = false;
        for (const Read &read : reads_of(stage(index))) {
            const int producer = read.from_input ? -1 : numbers_[read.producer];
            result = result ||
                     (producer >= 0 && (anchors_[producer] == nest_.anchor || (anchors_[producer] < 0 && depends_on_member(producer))));
        }
        return depends_[{nest_.anchor, index}] = result;
    }

    /// Whether the stage has the anchor's axes; of values that fold nothing, its first ones, each whole or of one place.
    static bool runs_along(const Stage &s, const Stage &anchor) {
        if (s.func.function().has_update_definition()) {
            return anchor.extents == s.extents;
        }
        bool runs = !s.extents.empty() && s.extents.size() <= anchor.extents.size();
        for (std::size_t i = 0; runs && i < s.extents.size(); ++i) {
            runs = s.extents[i] == anchor.extents[i] || s.extents[i] == Extent(1);
        }
        return runs;
    }

    Member place_member(int index) {
        const Stage &s = stage(index);
        const ScheduledStage &schedule = scheduled(index);
        Member member;
        member.stage = index;
        const auto &arguments = s.func.function().args();
        if (auto found = pending_.find(index); found != pending_.end()) {
            const std::vector<Expr> place = place_of(s, found->second);
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                member.environment[arguments[i]] = place[i];
            }
        } else {
            match_arguments(s, member);
            const Stage &anchor = stage(nest_.anchor);
            const bool found_all =
                std::all_of(arguments.begin(), arguments.end(), [&](const std::string &a) { return member.environment.count(a) > 0; });
            if (!found_all && runs_along(s, anchor)) {
                for (std::size_t i = 0; i < arguments.size(); ++i) {
                    member.environment[arguments[i]] =
                        s.extents[i] == anchor.extents[i] ? roots_.at(anchor.func.function().args()[i]) : Expr(0);
                }
            }
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                if (!member.environment.count(arguments[i]) && s.extents[i] == Extent(1)) {
                    member.environment[arguments[i]] = Expr(0);
                } else if (!member.environment.count(arguments[i])) {
                    matcher_.by_extent(arguments[i], s.extents[i], member.environment);
                }
                if (!member.environment.count(arguments[i])) {
                    schedule_error(
                        schedule.at_location, s.name(),
                        fmt::format("it shares no loop of '{}' that runs over its axis '{}'", stage(nest_.anchor).name(), arguments[i]),
                        "compute it at the root");
                }
            }
        }
        place_reduction(s, schedule, member);
        return member;
    }

    /// Where a stage is computed that is read at several places: what is stored must be computed whole, whatever single elements others
    /// read.
    std::vector<Expr> place_of(const Stage &s, const std::vector<PlacedRead> &reads) const {
        const auto whole = std::find_if(reads.begin(), reads.end(), [&](const PlacedRead &read) { return covers(s, read.indices); });
        const Stage &anchor = stage(nest_.anchor);
        if (whole != reads.end() || !is_output(s) || !(anchor.extents == s.extents)) {
            return whole != reads.end() && is_output(s) ? whole->indices : reads.front().indices;
        }
        std::vector<Expr> own;
        for (const std::string &argument : anchor.func.function().args()) {
            own.push_back(roots_.at(argument));
        }
        return own;
    }

    bool is_output(const Stage &s) const {
        return std::any_of(algorithm_.outputs.begin(), algorithm_.outputs.end(),
                           [&](const TensorOutput &output) { return output.stage == s.name(); });
    }

    /// Whether the nest's axes run over all of the stage, one along each of its own.
    bool covers(const Stage &s, const std::vector<Expr> &indices) const {
        std::set<std::string> seen;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const tile::Axis *axis = nest_.find_axis(as_variable(indices[i]));
            const bool runs_along = axis && axis->extent == s.extents[i] && seen.insert(axis->name).second;
            if (!runs_along && !(s.extents[i] == Extent(1))) {
                return false;
            }
        }
        return true;
    }

    /// A fold's terms may lie at places that the rest of the nest reads, too: then its RVars have to match for its arguments to.
    void match_arguments(const Stage &s, Member &member) {
        const hi::Function function = s.func.function();
        match_by_reads(member, function.args());
        if (!function.has_update_definition()) {
            return;
        }
        std::vector<std::string> wanted = function.args();
        for (const auto &variable : function.update(0).schedule().rvars()) {
            wanted.push_back(variable.var);
        }
        match_by_reads(member, wanted);
        for (std::size_t i = function.args().size(); i < wanted.size(); ++i) {
            member.environment.erase(wanted[i]);
        }
    }

    void match_by_reads(Member &member, const std::vector<std::string> &wanted) {
        const std::vector<PlacedRead> own = reads_through_inlined(algorithm_, anchors_, member.stage, member.environment, nest_.ranges);
        matcher_.by_reads(stage(member.stage), own, reads_, wanted, member.environment);
    }

    /// Gives RVars the axes that the rest of the nest reads the same places with; what is left gets axes of its own.
    void place_reduction(const Stage &s, const ScheduledStage &schedule, Member &member) {
        const hi::Function function = s.func.function();
        if (!function.has_update_definition() || scan_variable(s)) {
            return;
        }
        std::vector<std::string> variables;
        for (const auto &variable : function.update(0).schedule().rvars()) {
            variables.push_back(variable.var);
        }
        const bool edited = std::any_of(schedule.axes.begin(), schedule.axes.end(), [](const LoopAxis &axis) {
            return axis.reduction && (axis.origin != LoopAxis::Origin::root || axis.binding != Binding::serial);
        });
        if (!edited) {
            match_by_reads(member, variables);
        }
        const bool complete =
            std::all_of(variables.begin(), variables.end(), [&](const std::string &v) { return member.environment.count(v) > 0; });
        if (complete && matcher_.disjoint(s, variables, member)) {
            return;
        }
        if (!edited && matcher_.by_anchor(s, variables, member)) {
            return;
        }
        for (const std::string &variable : variables) {
            member.environment.erase(variable);
        }
        const AxisTree tree = build_axis_tree(schedule, s.name() + "_", true);
        const int offset = static_cast<int>(nest_.axes.size());
        nest_.axes.insert(nest_.axes.end(), tree.axes.begin(), tree.axes.end());
        nest_.guards.insert(nest_.guards.end(), tree.guards.begin(), tree.guards.end());
        add_ranges(tree.axes);
        for (const auto &[name, root] : tree.roots) {
            member.environment[name] = root;
        }
        for (NestLoop loop : tree.loops) {
            loop.axis += offset;
            insert_loop(loop);
        }
    }

    /// Serial loops go outside of what lies in registers; vector leaves innermost.
    void insert_loop(const NestLoop &loop) {
        const tile::Level level = nest_.leaf(loop).level;
        auto at = nest_.loops.end();
        if (level == tile::Level::loop) {
            at = std::find_if(nest_.loops.begin(), nest_.loops.end(),
                              [&](const NestLoop &l) { return nest_.leaf(l).level != tile::Level::loop; });
        }
        nest_.loops.insert(at, loop);
    }

    const Algorithm &algorithm_;
    const StageNumbers numbers_;
    const ScheduledKernel &schedule_;
    const std::vector<int> &anchors_;
    Nest nest_;
    Substitution roots_;  ///< the anchor's axes over the nest's
    AxisMatcher matcher_;
    std::map<std::string, std::vector<PlacedRead>> reads_;
    std::set<std::string> seen_;
    std::map<int, std::vector<PlacedRead>> pending_;
    std::set<int> automatic_;
    std::map<std::pair<int, int>, bool> depends_;
};

}  // namespace

Nest build_nest(const Algorithm &algorithm, const ScheduledKernel &schedule, const std::vector<int> &anchors, int anchor) {
    return NestBuilder(algorithm, schedule, anchors, anchor).run();
}

}  // namespace tilewright
