#include <algorithm>
#include <sstream>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/passes/axis_tree.h"
#include "lowering/passes/nest.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

const tile::Axis *Nest::find_axis(const std::string &name) const {
    auto found = std::find_if(axes.begin(), axes.end(), [&](const tile::Axis &a) { return a.name == name; });
    return found == axes.end() ? nullptr : &*found;
}

const Member *Nest::find_member(int stage) const {
    auto found = std::find_if(members.begin(), members.end(), [&](const Member &m) { return m.stage == stage; });
    return found == members.end() ? nullptr : &*found;
}

int stage_index(const Algorithm &algorithm, const std::string &name) {
    auto found = std::find_if(algorithm.stages.begin(), algorithm.stages.end(), [&](const Stage &s) { return s.name() == name; });
    return found == algorithm.stages.end() ? -1 : static_cast<int>(found - algorithm.stages.begin());
}

std::vector<Expr> right_hand_sides(const Stage &stage) {
    const hi::Function function = stage.func.function();
    if (function.has_update_definition()) {
        if (auto fold = match_fold(stage.func)) {
            return fold->terms;
        }
        return inline_lets(function.update(0).values());
    }
    return inline_lets(function.definition().values());
}

namespace {

/// A read as it stands in the nest: indices over the nest's axes.
struct PlacedRead {
    std::string producer;
    std::vector<Expr> indices;
};

class Placer {
public:
    Placer(const Kernel &kernel, const ScheduledKernel &schedule, const GpuFacts &facts)
        : algorithm_(kernel.algorithm), schedule_(schedule), facts_(facts) {}

    Placement run() {
        refuse_unserved();
        const int count = static_cast<int>(algorithm_.stages.size());
        placement_.nest_of.assign(count, -1);
        anchor_of_.assign(count, -1);
        for (int i = 0; i < count; ++i) {
            anchor_of_[i] = anchor_of(i, 0);
        }
        // A nest stands where the last of its stages does: everything that its members read from memory has been computed by then.
        std::map<int, int> last;
        for (int i = 0; i < count; ++i) {
            if (anchor_of_[i] >= 0) {
                last[anchor_of_[i]] = i;
            }
        }
        for (int anchor : order_of_nests(last)) {
            placement_.nests.push_back(build(anchor));
        }
        return std::move(placement_);
    }

private:
    /// Directives that only products on the matrix unit understand, or that no nest does: nothing that was asked for is left out silently.
    void refuse_unserved() const {
        const auto has_product = [](const ScheduledStage &s) { return s.find_flag("tensor_core") != nullptr; };
        if (std::any_of(schedule_.stages.begin(), schedule_.stages.end(), has_product)) {
            return;
        }
        static const std::set<std::string> unserved = {"stream", "persistent", "cluster", "raster", "pipeline", "async_copy", "bulk_copy", "multicast",
                                                       "swizzle", "warpgroups", "producer_warps"};
        for (const ScheduledStage &s : schedule_.stages) {
            if (!s.partial_of.empty()) {
                schedule_error(s.at_location, s.partial_of, "rfactor makes a stage that has no launch of its own on a GPU", "use split_blocks(axis, n)");
            }
            if (!s.copy_of.empty() && s.is_edited && (s.store_in != MemorySpace::shared || s.compute != ComputeLevel::at)) {
                schedule_error(s.at_location, s.name, "a copy is staged in shared memory where its reader walks along the terms",
                               "add compute_at(reader, axis) and store_in(shared), or remove it");
            }
            for (const ScheduleFlag &flag : s.flags) {
                if (unserved.count(flag.directive.name)) {
                    schedule_error(flag.directive.location, flag.directive.to_string(), "it serves a product on the matrix unit, and this kernel has none",
                                   "remove it, or give the product tensor_core(m, n, k)");
                }
            }
        }
    }

    const Stage &stage(int index) const { return algorithm_.stages[index]; }
    const ScheduledStage &scheduled(int index) const {
        const ScheduledStage *found = schedule_.find(stage(index).name());
        internal_assert(found, "stage {} has no schedule", stage(index).name());
        return *found;
    }
    bool is_output(int index) const {
        return std::any_of(algorithm_.outputs.begin(), algorithm_.outputs.end(), [&](const TensorOutput &o) { return o.stage == stage(index).name(); });
    }
    bool is_pure(int index) const {
        const hi::Function f = stage(index).func.function();
        return !f.has_update_definition() && !f.has_extern_definition();
    }

    /// The root stage whose loops compute this one; -1 where it is inlined.
    int anchor_of(int index, int depth) const {
        const ScheduledStage &s = scheduled(index);
        internal_assert(depth < 1000, "stages of kernel are computed at each other in a circle: {}", s.name);
        if (const ScheduleFlag *with = s.find_flag("compute_with")) {
            return anchor_of(stage_index(algorithm_, with->word(0)), depth + 1);
        }
        switch (s.compute) {
            case ComputeLevel::root: return index;
            case ComputeLevel::inlined: return -1;
            case ComputeLevel::at: {
                const int at = stage_index(algorithm_, s.at_stage);
                const int anchor = at < 0 ? -1 : anchor_of(at, depth + 1);
                if (anchor < 0) {
                    schedule_error(s.at_location, s.name, fmt::format("it is computed at '{}', which is inlined", s.at_stage),
                                   "name the stage that has the loops");
                }
                return anchor;
            }
            case ComputeLevel::unspecified: return is_output(index) || !is_pure(index) ? index : -1;
        }
        return -1;
    }

    /// Nests by dependence: a nest after those whose stages its own read.
    std::vector<int> order_of_nests(const std::map<int, int> &last) const {
        std::map<int, std::set<int>> needs;
        for (const auto &[anchor, position] : last) {
            needs[anchor];
        }
        for (int i = 0; i < static_cast<int>(anchor_of_.size()); ++i) {
            if (anchor_of_[i] >= 0) {
                std::set<int> seen;
                collect_needs(i, anchor_of_[i], needs[anchor_of_[i]], seen);
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
                schedule_error(scheduled(blocked).at_location, stage(blocked).name(), "its loops and those of another stage need each other's results",
                               "compute one of the stages between them at the root");
            }
            done.insert(next);
            order.push_back(next);
        }
        return order;
    }
    void collect_needs(int index, int anchor, std::set<int> &needs, std::set<int> &seen) const {
        if (!seen.insert(index).second) {
            return;
        }
        for (const Read &read : reads_of(stage(index))) {
            const int producer = read.from_input ? -1 : stage_index(algorithm_, read.producer);
            if (producer < 0 || producer == index) {
                continue;
            }
            if (anchor_of_[producer] < 0) {
                collect_needs(producer, anchor, needs, seen);
            } else if (anchor_of_[producer] != anchor) {
                needs.insert(anchor_of_[producer]);
            }
        }
    }

    // ---- One nest ----
    Nest build(int anchor) {
        Nest nest;
        nest.anchor = anchor;
        nest_ = &nest;
        reads_.clear();
        seen_.clear();
        pending_.clear();
        automatic_.clear();
        const ScheduledStage &schedule = scheduled(anchor);
        AxisTree tree = build_axis_tree(schedule, "", false);
        if (scan_variable(anchor)) {
            drop_reductions(tree);
        }
        nest.axes = tree.axes;
        nest.loops = tree.loops;
        nest.guards = tree.guards;
        for (const auto &[name, range] : algorithm_.symbols) {
            nest.ranges[name] = range;
        }
        add_ranges(nest.axes);
        const Form form = classify(stage(anchor));
        if (form == Form::scatter || form == Form::sort) {
            placement_.nest_of[anchor] = static_cast<int>(placement_.nests.size());
            return nest;
        }
        Member first;
        first.stage = anchor;
        first.environment = roots_ = tree.roots;
        take(std::move(first));
        for (int i = static_cast<int>(algorithm_.stages.size()) - 1; i >= 0; --i) {
            const bool automatic = automatic_.count(i) > 0;
            if (i == anchor || (anchor_of_[i] != anchor && !automatic)) {
                continue;
            }
            take(place_member(i));
        }
        std::sort(nest.members.begin(), nest.members.end(), [](const Member &a, const Member &b) { return a.stage < b.stage; });
        for (const Member &member : nest.members) {
            if (anchor_of_[member.stage] >= 0) {
                placement_.nest_of[member.stage] = static_cast<int>(placement_.nests.size());
            }
        }
        finish_units(schedule);
        return nest;
    }

    void add_ranges(const std::vector<tile::Axis> &axes) {
        for (const tile::Axis &axis : axes) {
            nest_->ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(algorithm_.symbols).max - 1, 0)};
            for (const tile::Leaf &leaf : axis.leaves) {
                nest_->ranges[leaf.name] = {0, std::max<std::int64_t>(leaf.extent.bounds(algorithm_.symbols).max - 1, 0)};
            }
        }
    }

    /// A scan's variable runs along one of its arguments: it has no axis of its own.
    std::optional<std::pair<std::string, std::string>> scan_variable(int index) const {
        const hi::Function function = stage(index).func.function();
        if (!function.has_update_definition() || match_scatter(stage(index).func)) {
            return std::nullopt;
        }
        const auto fold = match_fold(stage(index).func);
        if (!fold || fold->scan_axis < 0) {
            return std::nullopt;
        }
        return std::pair(fold->variables.at(0), function.args()[fold->scan_axis]);
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
        if (const auto scan = scan_variable(member.stage)) {
            member.environment[scan->first] = member.environment.at(scan->second);
        }
        for (const std::string &name : s.func.function().args()) {
            Expr place = simplify_index(member.environment.at(name), nest_->ranges);
            member.environment[name] = place;
            member.places.push_back(place);
            for (const std::string &axis : variables_of(place)) {
                if (nest_->find_axis(axis)) {
                    member.axes.insert(axis);
                }
            }
        }
        for (const auto &[name, place] : member.environment) {
            for (const std::string &axis : variables_of(place)) {
                if (nest_->find_axis(axis) && !member.axes.count(axis)) {
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
        for (const Expr &e : definitions(s)) {
            follow(e, member.environment, all, member.stage);
        }
        nest_->members.push_back(std::move(member));
    }

    /// Every expression of a stage: initial values and terms.
    std::vector<Expr> definitions(const Stage &s) const {
        std::vector<Expr> all = right_hand_sides(s);
        const hi::Function function = s.func.function();
        if (function.has_update_definition()) {
            const std::vector<Expr> initial = inline_lets(function.definition().values());
            all.insert(all.end(), initial.begin(), initial.end());
        }
        return all;
    }

    /// Records what `e` reads, through inlined stages, with indices over the nest's axes.
    void follow(const Expr &e, const Substitution &environment, const std::set<std::string> &reader_axes, int reader) {
        std::vector<const hi::Call *> calls;
        visit_reads(e, [&](const hi::Call *call) { calls.push_back(call); });
        for (const hi::Call *call : calls) {
            PlacedRead read{call->name, {}};
            for (const Expr &index : call->args) {
                read.indices.push_back(simplify_index(substitute_variables(index, environment), nest_->ranges));
            }
            const int producer = call->call_type == hi::Call::Halide ? stage_index(algorithm_, call->name) : -1;
            if (producer == reader || !first_time(read)) {
                continue;
            }
            reads_[read.producer].push_back(read);
            if (producer < 0 || (anchor_of_[producer] >= 0 && anchor_of_[producer] != nest_->anchor)) {
                continue;
            }
            if (anchor_of_[producer] == nest_->anchor || automatic_.count(producer)) {
                pending_[producer].push_back(read);
                continue;
            }
            std::set<std::string> axes;
            for (const Expr &index : read.indices) {
                for (const std::string &name : variables_of(index)) {
                    if (nest_->find_axis(name)) {
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

    bool first_time(const PlacedRead &read) {
        std::ostringstream key;
        key << read.producer;
        for (const Expr &index : read.indices) {
            key << "|" << index;
        }
        return seen_.insert(key.str()).second;
    }

    static bool is_narrower(const std::set<std::string> &axes, const std::set<std::string> &of) {
        return axes.size() < of.size() && std::includes(of.begin(), of.end(), axes.begin(), axes.end());
    }

    /// Whether an inlined stage is computed from a value that this nest keeps (a statistic of the row): then it is worth keeping once.
    bool depends_on_member(int index) {
        auto known = depends_.find({nest_->anchor, index});
        if (known != depends_.end()) {
            return known->second;
        }
        bool result = false;
        for (const Read &read : reads_of(stage(index))) {
            const int producer = read.from_input ? -1 : stage_index(algorithm_, read.producer);
            result = result || (producer >= 0 && (anchor_of_[producer] == nest_->anchor || (anchor_of_[producer] < 0 && depends_on_member(producer))));
        }
        return depends_[{nest_->anchor, index}] = result;
    }

    Member place_member(int index) {
        const Stage &s = stage(index);
        const ScheduledStage &schedule = scheduled(index);
        Member member;
        member.stage = index;
        const auto &arguments = s.func.function().args();
        if (auto found = pending_.find(index); found != pending_.end()) {
            const std::vector<PlacedRead> &places = found->second;
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                member.environment[arguments[i]] = places.front().indices[i];
            }
        } else {
            match_by_reads(s, arguments, member.environment);
            const Stage &anchor = stage(nest_->anchor);
            const bool found_all = std::all_of(arguments.begin(), arguments.end(), [&](const std::string &a) { return member.environment.count(a) > 0; });
            if (!found_all && anchor.extents == s.extents) {
                for (std::size_t i = 0; i < arguments.size(); ++i) {
                    member.environment[arguments[i]] = roots_.at(anchor.func.function().args()[i]);
                }
            }
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                if (!member.environment.count(arguments[i])) {
                    match_by_extent(arguments[i], s.extents[i], member.environment);
                }
                if (!member.environment.count(arguments[i])) {
                    schedule_error(schedule.at_location, s.name(),
                                   fmt::format("it shares no loop of '{}' that runs over its axis '{}'", stage(nest_->anchor).name(), arguments[i]),
                                   "compute it at the root");
                }
            }
        }
        place_reduction(s, schedule, member);
        return member;
    }

    /// Gives RVars the axes that the rest of the nest reads the same places with; what is left gets axes of its own.
    void place_reduction(const Stage &s, const ScheduledStage &schedule, Member &member) {
        const hi::Function function = s.func.function();
        if (!function.has_update_definition() || scan_variable(member.stage)) {
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
            match_by_reads(s, variables, member.environment);
        }
        const bool complete = std::all_of(variables.begin(), variables.end(), [&](const std::string &v) { return member.environment.count(v) > 0; });
        if (complete && disjoint(s, variables, member)) {
            return;
        }
        if (!edited && match_by_anchor(s, variables, member)) {
            return;
        }
        for (const std::string &variable : variables) {
            member.environment.erase(variable);
        }
        const AxisTree tree = build_axis_tree(schedule, s.name() + "_", true);
        const int offset = static_cast<int>(nest_->axes.size());
        nest_->axes.insert(nest_->axes.end(), tree.axes.begin(), tree.axes.end());
        nest_->guards.insert(nest_->guards.end(), tree.guards.begin(), tree.guards.end());
        add_ranges(tree.axes);
        for (const auto &[name, root] : tree.roots) {
            member.environment[name] = root;
        }
        for (NestLoop loop : tree.loops) {
            loop.axis += offset;
            insert_loop(loop);
        }
    }

    /// Gives RVars the anchor's loops of equal extents, in order: whatever the stage reads, its terms are spread over threads as the anchor's are.
    bool match_by_anchor(const Stage &s, const std::vector<std::string> &variables, Member &member) {
        const Stage &anchor = stage(nest_->anchor);
        const hi::Function function = anchor.func.function();
        std::vector<std::string> candidates = function.args();
        if (function.has_update_definition()) {
            for (const auto &variable : function.update(0).schedule().rvars()) {
                candidates.push_back(variable.var);
            }
        }
        Substitution taken;
        for (const std::string &argument : s.func.function().args()) {
            taken[argument] = member.environment.at(argument);
        }
        Substitution result = taken;
        for (const std::string &variable : variables) {
            const auto is_free = [&](const std::string &name) {
                const auto root = roots_.find(name);
                return root != roots_.end() && extent_of(anchor, name) == extent_of(s, variable) &&
                       std::none_of(result.begin(), result.end(), [&](const auto &e) { return equal_indices(e.second, root->second, nest_->ranges); });
            };
            const auto found = std::find_if(candidates.begin(), candidates.end(), is_free);
            if (found == candidates.end()) {
                return false;
            }
            result[variable] = roots_.at(*found);
        }
        Member matched = member;
        matched.environment = result;
        if (!disjoint(s, variables, matched)) {
            return false;
        }
        member.environment = std::move(result);
        return true;
    }

    /// Serial loops go outside of what lies in registers; vector leaves innermost.
    void insert_loop(const NestLoop &loop) {
        const tile::Level level = nest_->leaf(loop).level;
        auto at = nest_->loops.end();
        if (level == tile::Level::loop) {
            at = std::find_if(nest_->loops.begin(), nest_->loops.end(), [&](const NestLoop &l) { return nest_->leaf(l).level != tile::Level::loop; });
        }
        nest_->loops.insert(at, loop);
    }

    /// Reduction variables must run over axes that the value does not vary along, and over each of them whole.
    bool disjoint(const Stage &s, const std::vector<std::string> &variables, const Member &member) const {
        std::set<std::string> used, reduced;
        Extent terms = 1, covered = 1;
        for (const auto &[name, place] : member.environment) {
            const bool reduces = std::find(variables.begin(), variables.end(), name) != variables.end();
            terms = reduces ? terms * extent_of(s, name) : terms;
            for (const std::string &axis : variables_of(place)) {
                if (nest_->find_axis(axis)) {
                    (reduces ? reduced : used).insert(axis);
                }
            }
        }
        for (const std::string &axis : reduced) {
            covered = covered * nest_->find_axis(axis)->extent;
            if (used.count(axis)) {
                return false;
            }
        }
        for (std::size_t i = 0; i < variables.size(); ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                if (equal_indices(member.environment.at(variables[i]), member.environment.at(variables[k]), nest_->ranges) && !(extent_of(s, variables[i]) == Extent(1))) {
                    return false;
                }
            }
        }
        return covered == terms;
    }

    /// Finds places where the stage reads what the nest reads already, and takes the nest's indices for its own variables.
    void match_by_reads(const Stage &s, const std::vector<std::string> &wanted, Substitution &environment) {
        std::vector<PlacedRead> own;
        std::set<std::string> visited;
        for (const Expr &e : definitions(s)) {
            collect_reads(e, environment, own, visited, stage_index(algorithm_, s.name()));
        }
        for (const PlacedRead &mine : own) {
            for (const PlacedRead &other : reads_[mine.producer]) {
                if (auto found = unify(mine, other, wanted, environment, s)) {
                    environment = *found;
                }
            }
        }
    }

    std::optional<Substitution> unify(const PlacedRead &mine, const PlacedRead &other, const std::vector<std::string> &wanted,
                                      const Substitution &environment, const Stage &s) const {
        Substitution result = environment;
        std::vector<std::size_t> later;
        bool gained = false;
        for (std::size_t i = 0; i < mine.indices.size(); ++i) {
            std::string open;
            int unknown = 0;
            for (const std::string &name : variables_of(mine.indices[i])) {
                if (std::find(wanted.begin(), wanted.end(), name) != wanted.end() && !result.count(name)) {
                    open = name;
                    ++unknown;
                }
            }
            if (unknown > 1) {
                later.push_back(i);
                continue;
            }
            if (unknown == 1) {
                // other = rest + open: solved for the one that is not known.
                const Expr rest = substitute_variables(substitute_variables(mine.indices[i], result), {{open, Expr(0)}});
                const Expr candidate = difference_of(other.indices[i], rest, nest_->ranges);
                Substitution with = result;
                with[open] = candidate;
                if (!(extent_of(s, open) == extent_at(candidate)) || !equal_indices(substitute_variables(mine.indices[i], with), other.indices[i], nest_->ranges)) {
                    return std::nullopt;
                }
                result = with;
                gained = true;
            } else if (!equal_indices(substitute_variables(mine.indices[i], result), other.indices[i], nest_->ranges)) {
                return std::nullopt;
            }
        }
        if (!later.empty()) {
            return std::nullopt;
        }
        return gained ? std::optional(result) : std::nullopt;
    }
    /// The extent that an index of the nest runs over: an axis's, or that of an argument of the anchor which it is.
    Extent extent_at(const Expr &index) const {
        if (const tile::Axis *found = nest_->find_axis(as_variable(index))) {
            return found->extent;
        }
        const Stage &anchor = stage(nest_->anchor);
        for (const auto &[name, root] : roots_) {
            if (equal_indices(root, index, nest_->ranges)) {
                return extent_of(anchor, name);
            }
        }
        return Extent(-1);
    }
    Extent extent_of(const Stage &s, const std::string &variable) const {
        const hi::Function function = s.func.function();
        for (std::size_t i = 0; i < s.extents.size(); ++i) {
            if (function.args()[i] == variable) {
                return s.extents[i];
            }
        }
        const auto &rvars = function.update(0).schedule().rvars();
        for (std::size_t i = 0; i < rvars.size(); ++i) {
            if (rvars[i].var == variable) {
                return s.reduction_extents[i];
            }
        }
        return Extent(-2);
    }

    void collect_reads(const Expr &e, const Substitution &environment, std::vector<PlacedRead> &into, std::set<std::string> &visited, int reader) {
        std::vector<const hi::Call *> calls;
        visit_reads(e, [&](const hi::Call *call) { calls.push_back(call); });
        for (const hi::Call *call : calls) {
            const int producer = call->call_type == hi::Call::Halide ? stage_index(algorithm_, call->name) : -1;
            if (producer == reader) {
                continue;
            }
            PlacedRead read{call->name, {}};
            std::ostringstream key;
            key << call->name;
            for (const Expr &index : call->args) {
                read.indices.push_back(simplify_index(substitute_variables(index, environment), nest_->ranges));
                key << "|" << read.indices.back();
            }
            if (!visited.insert(key.str()).second) {
                continue;
            }
            into.push_back(read);
            if (producer >= 0 && anchor_of_[producer] < 0) {
                Substitution inner;
                for (std::size_t i = 0; i < read.indices.size(); ++i) {
                    inner[stage(producer).func.function().args()[i]] = read.indices[i];
                }
                for (const Expr &value : right_hand_sides(stage(producer))) {
                    collect_reads(value, inner, into, visited, producer);
                }
            }
        }
    }

    void match_by_extent(const std::string &variable, const Extent &extent, Substitution &environment) const {
        for (const tile::Axis &axis : nest_->axes) {
            const bool taken = std::any_of(environment.begin(), environment.end(), [&](const auto &e) { return as_variable(e.second) == axis.name; });
            if (axis.extent == extent && !taken) {
                environment[variable] = tile::variable(axis.name);
                return;
            }
        }
    }

    // ---- Launch shape ----
    void finish_units(const ScheduledStage &schedule) {
        Nest &nest = *nest_;
        if (const auto scan = scan_variable(nest.anchor)) {
            // The running value is one for each element of the other axes: their serial loops stand outside.
            const std::string axis = as_variable(roots_.at(scan->second));
            std::stable_sort(nest.loops.begin(), nest.loops.end(), [&](const NestLoop &a, const NestLoop &b) {
                const auto inner = [&](const NestLoop &l) { return nest.axes[l.axis].name == axis || nest.leaf(l).level != tile::Level::loop; };
                return inner(a) < inner(b);
            });
        }
        std::stable_sort(nest.loops.begin(), nest.loops.end(), [&](const NestLoop &a, const NestLoop &b) {
            return (nest.leaf(a).level == tile::Level::vector) < (nest.leaf(b).level == tile::Level::vector);
        });
        Extent blocks = 1;
        std::int64_t threads = 1;
        for (const tile::Axis &axis : nest.axes) {
            for (const tile::Leaf &leaf : axis.leaves) {
                if (leaf.level == tile::Level::grid) {
                    blocks = blocks * leaf.extent;
                } else if (leaf.level == tile::Level::thread) {
                    if (!leaf.extent.is_constant()) {
                        schedule_error(schedule.at_location, schedule.name, fmt::format("loop '{}' of symbolic extent {} is bound to threads", leaf.name, leaf.extent.to_string()),
                                       "split it by a constant and bind the inner part");
                    }
                    threads = std::max(threads, leaf.extent.value() * leaf.unit_stride.value());
                }
            }
        }
        if (threads > 1024) {
            schedule_error(schedule.at_location, schedule.name, fmt::format("its loops ask for {} threads a block; there are at most 1024", threads), "split by smaller factors");
        }
        nest.threads = static_cast<int>(threads);
        nest.blocks = blocks;
        if (const ScheduleFlag *bounds = schedule.find_flag("launch_bounds")) {
            nest.min_blocks = static_cast<int>(bounds->number(1));
        }
    }

    const Algorithm &algorithm_;
    const ScheduledKernel &schedule_;
    const GpuFacts &facts_;
    Placement placement_;
    std::vector<int> anchor_of_;
    Nest *nest_ = nullptr;
    std::map<std::string, std::vector<PlacedRead>> reads_;
    std::set<std::string> seen_;
    std::map<int, std::vector<PlacedRead>> pending_;
    std::set<int> automatic_;
    std::map<std::pair<int, int>, bool> depends_;
    Substitution roots_;  ///< the anchor's axes over the nest's
};

}  // namespace

Placement place_stages(const Kernel &kernel, const ScheduledKernel &schedule, const GpuFacts &facts) {
    return Placer(kernel, schedule, facts).run();
}

}  // namespace tilewright
