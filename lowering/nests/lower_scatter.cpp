#include <algorithm>
#include <limits>
#include <optional>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/invoke.h"
#include "lowering/nests/special_forms.h"
#include "lowering/nests/stage_values.h"
#include "lowering/passes/launch_ranges.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

std::vector<Expr> unflatten(const std::vector<Extent> &extents, const Expr &flat) {
    std::vector<Expr> places(extents.size());
    Expr rest = flat;
    for (std::size_t i = extents.size(); i-- > 0;) {
        places[i] = i == 0 ? rest : rest % to_halide(extents[i]);
        rest = rest / to_halide(extents[i]);
    }
    return places;
}

namespace {

constexpr int threads_per_block = 256;
constexpr std::int64_t wanted_threads = 1 << 15;

/// `lanes` neighbours a thread.
tile::Axis spread(const std::string &name, const Extent &extent, std::int64_t lanes) {
    const std::int64_t of_block = threads_per_block * lanes;
    tile::Axis axis{name,
                    extent,
                    {{name + "_block", ceil_div(extent, of_block), Level::grid, of_block, 1},
                     {name + "_thread", threads_per_block, Level::thread, lanes, 1}}};
    if (lanes > 1) {
        axis.leaves.push_back({name + "_lane", lanes, Level::vector, 1, 1});
    }
    return axis;
}

/// What all lanes share says the same of the first.
Expr of_first(const tile::Axis &axis, const Expr &condition) {
    return axis.leaves.back().level == Level::vector ? substitute_variables(condition, {{axis.name, tile::variable(axis.name + ".first")}})
                                                     : condition;
}

tile::Block in_lanes(const tile::Axis &axis, tile::Block body) {
    const tile::Leaf &last = axis.leaves.back();
    return last.level == Level::vector ? tile::Block{tile::Statement{tile::For{last.name, last.extent, Level::vector, std::move(body)}}}
                                       : body;
}

class ScatterLowering {
public:
    ScatterLowering(const Kernel &kernel, const Placement &placement, int nest, Storage &storage, bool atomic)
        : kernel_(kernel),
          placement_(placement),
          storage_(storage),
          index_(placement.nests[nest].anchor),
          stage_(kernel.algorithm.stages[index_]),
          update_(*match_scatter(stage_.func)),
          targets_(storage.targets(index_, 0)),
          atomic_(atomic || is_order_free()),
          claims_(!atomic && claims_places()) {}

    std::vector<tile::Launch> run() {
        if (stage_.func.outputs() != 1) {
            user_error("kernel {}: stage '{}' scatters a tuple; scatter each element by a stage of its own", kernel_.name, stage_.name());
        }
        if (targets_.empty()) {
            return {};
        }
        std::vector<tile::Launch> launches{initial()};
        if (claims_) {
            claim_ = storage_.scratch(identifier(stage_.name()) + "_claim", Halide::Int(32), claimed(stage_.extents), true);
            launches.push_back(updates(Part::claim));
        }
        launches.push_back(updates(Part::store));
        return launches;
    }

private:
    /// Updates of one place where the last one counts: each claims its places by its number, and the highest number stores.
    enum class Part { claim, store };

    /// Many updates that replace what was there go at once.
    bool claims_places() const {
        constexpr std::int64_t few = 16;
        const SymbolRange steps = product(stage_.reduction_extents).bounds(kernel_.algorithm.symbols);
        return update_.combiner == Combiner::last && steps.max >= few && steps.max < std::numeric_limits<int>::max();
    }

    /// Updates that leave the same bits whatever their order.
    bool is_order_free() const {
        const bool is_extreme = update_.combiner == Combiner::minimum || update_.combiner == Combiner::maximum;
        const bool wraps = update_.combiner == Combiner::sum || update_.combiner == Combiner::product;
        return is_extreme || (wraps && !update_.terms[0].type().is_float());
    }

    Nest nest_with(const std::vector<tile::Axis> &axes) const {
        Nest nest;
        nest.anchor = index_;
        nest.axes = axes;
        for (const auto &[name, range] : kernel_.algorithm.symbols) {
            nest.ranges[name] = range;
        }
        for (const tile::Axis &axis : axes) {
            nest.ranges[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(kernel_.algorithm.symbols).max - 1, 0)};
        }
        Member member;
        member.stage = index_;
        nest.members.push_back(member);
        return nest;
    }
    static tile::Block guarded(const tile::Axis &axis, tile::Block body) {
        if (axis.exact()) {
            return body;
        }
        return {tile::Statement{tile::If{of_first(axis, tile::variable(axis.name) < to_halide(axis.extent)), std::move(body)}}};
    }

    /// Neighbours along the innermost axis that one access moves.
    std::int64_t widest_lanes() const {
        std::int64_t lanes = widest_access / targets_.front().types[0].bytes();
        while (lanes > 1 && !(mod(stage_.extents.back(), Extent(lanes)) == Extent(0))) {
            lanes /= 2;
        }
        return lanes;
    }

    tile::Launch initial() {
        tile::Launch launch;
        launch.name = identifier(kernel_.name + "_" + stage_.name() + "_initial");
        const tile::Axis axis = spread("element", product(stage_.extents), stage_.extents.empty() ? 1 : widest_lanes());
        launch.axes = {axis};
        launch.blocks = axis.leaves[0].extent;
        launch.threads = threads_per_block;
        const Nest nest = nest_with(launch.axes);
        StageValues values(kernel_, nest, placement_, storage_, launch);
        const std::vector<Expr> places = unflatten(stage_.extents, tile::variable("element"));
        Substitution environment;
        for (std::size_t i = 0; i < places.size(); ++i) {
            environment[stage_.func.function().args()[i]] = places[i];
        }
        const Expr value = values.evaluate(update_.initial[0], environment, index_);
        tile::Block stores;
        for (const tile::Buffer &target : targets_) {
            values.use(target);
            stores.push_back({tile::Store{target.name, places, {value}}});
        }
        launch.body = guarded(axis, in_lanes(axis, std::move(stores)));
        return launch;
    }

    /// Arguments that each update leaves alone: places along them never meet.
    std::vector<bool> free_arguments() const {
        std::vector<bool> free;
        for (std::size_t i = 0; i < update_.places.size(); ++i) {
            free.push_back(as_variable(update_.places[i]) == stage_.func.function().args()[i]);
        }
        return free;
    }
    /// Free arguments that the places chosen along the others do not depend on: all elements along them go to one place together.
    std::vector<bool> carried_arguments() const {
        std::vector<bool> carried = free_arguments();
        for (std::size_t i = 0; i < carried.size(); ++i) {
            for (std::size_t other = 0; carried[i] && other < carried.size(); ++other) {
                carried[i] = other == i || !mentions(update_.places[other], stage_.func.function().args()[i]);
            }
        }
        return carried;
    }
    /// Of one entry for each argument, those that tell the claims of updates apart.
    template<typename T> std::vector<T> claimed(const std::vector<T> &all) const {
        const std::vector<bool> carried = carried_arguments();
        std::vector<T> result;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!carried[i]) {
                result.push_back(all[i]);
            }
        }
        return result;
    }

    /// How a launch's updates are shared out among its threads.
    struct Work {
        std::vector<bool> is_element;  ///< for each argument: threads run along it
        std::vector<Extent> extents;   ///< of those arguments
        std::int64_t owners = 1;       ///< of destinations, where each takes all updates in order
        tile::Axis axis;
        Expr element, share;  ///< of a thread: the place along those arguments, and the number of its update or owner
    };

    bool at_once() const { return atomic_ || claims_; }

    Work share_out(Part part) const {
        Work work;
        work.is_element = free_arguments();
        const std::vector<bool> carried = carried_arguments();
        const bool elements_last = !work.is_element.empty() && work.is_element.back();
        for (std::size_t i = 0; i < carried.size(); ++i) {
            work.is_element[i] = work.is_element[i] && !(part == Part::claim && carried[i]);
            if (work.is_element[i]) {
                work.extents.push_back(stage_.extents[i]);
            }
        }
        const Extent elements = product(work.extents);
        const std::int64_t known = std::max<std::int64_t>(elements.bounds(kernel_.algorithm.symbols).min, 1);
        while (!at_once() && work.owners * known < wanted_threads) {
            work.owners *= 2;
        }
        const Extent shares = at_once() ? product(stage_.reduction_extents) : Extent(work.owners);
        // Neighbouring threads take neighbouring elements, so that terms are read together; or neighbouring updates where these lie
        // together.
        const bool elements_first = !at_once() || elements_last;
        const bool wide = at_once() && carried.back() && part == Part::store;
        work.axis = spread("work", elements * shares, wide ? widest_lanes() : 1);
        const Expr thread = tile::variable("work");
        work.element = elements_first ? thread % to_halide(elements) : thread / to_halide(shares);
        work.share = elements_first ? thread / to_halide(elements) : thread % to_halide(shares);
        return work;
    }

    static std::string update_loop(const std::string &variable) { return "update_" + variable; }

    /// What the stage's arguments and reduction variables are in a thread.
    Substitution environment_of(const Work &work) const {
        Substitution environment;
        const std::vector<Expr> places = unflatten(work.extents, work.element);
        std::size_t next = 0;
        for (std::size_t i = 0; i < work.is_element.size(); ++i) {
            if (work.is_element[i]) {
                environment[stage_.func.function().args()[i]] = places[next++];
            }
        }
        Expr rest = work.share;
        for (std::size_t i = 0; i < update_.variables.size(); ++i) {
            if (at_once()) {  // the first variable runs fastest
                const Expr extent = to_halide(stage_.reduction_extents[i]);
                environment[update_.variables[i]] = i + 1 == update_.variables.size() ? rest : rest % extent;
                rest = rest / extent;
            } else {
                environment[update_.variables[i]] = tile::variable(update_loop(update_.variables[i]));
            }
        }
        return environment;
    }

    tile::Launch updates(Part part) {
        const Work work = share_out(part);
        tile::Launch launch;
        launch.name = identifier(kernel_.name + "_" + stage_.name() + (part == Part::claim ? "_claim" : ""));
        launch.axes = {work.axis};
        launch.blocks = work.axis.leaves[0].extent;
        launch.threads = threads_per_block;
        std::vector<tile::Axis> all = launch.axes;
        for (std::size_t i = 0; i < update_.variables.size(); ++i) {
            all.push_back({update_loop(update_.variables[i]), stage_.reduction_extents[i], {}});
        }
        const Nest nest = nest_with(all);
        StageValues values(kernel_, nest, placement_, storage_, launch);
        const Substitution environment = environment_of(work);
        const std::vector<bool> carried = carried_arguments();
        std::vector<Expr> places;
        for (std::size_t i = 0; i < carried.size(); ++i) {
            places.push_back(part == Part::claim && carried[i] ? Expr(0) : values.evaluate(update_.places[i], environment, index_));
        }
        tile::Block body = part == Part::claim ? claim(launch, claimed(places), work.share)
                                               : in_lanes(work.axis, update_body(values, environment, places));
        if (claims_ && part == Part::store) {
            values.use(*claim_);
            const Expr is_last = tile::read(*claim_, claimed(places)) == work.share + 1;
            body = {tile::Statement{tile::If{of_first(work.axis, is_last), std::move(body)}}};
        }
        if (!at_once()) {
            body = {tile::Statement{tile::If{owner_of(places, work.owners) == work.share, std::move(body)}}};
            for (std::size_t i = 0; i < update_.variables.size(); ++i) {
                body = {tile::Statement{
                    tile::For{update_loop(update_.variables[i]), stage_.reduction_extents[i], Level::loop, std::move(body)}}};
            }
        }
        launch.body = guarded(work.axis, std::move(body));
        return launch;
    }

    tile::Block claim(tile::Launch &launch, const std::vector<Expr> &places, const Expr &number) const {
        launch.buffers.push_back(*claim_);
        return {invoke("atomic_raise", {}, {buffer(claim_->name, places), scalar(number + 1)}, {claim_->name})};
    }

    /// Which of the owners a destination belongs to.
    Expr owner_of(const std::vector<Expr> &places, std::int64_t owners) const {
        const std::vector<bool> free = free_arguments();
        Expr flat = 0;
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!free[i]) {
                flat = flat * to_halide(stage_.extents[i]) + places[i];
            }
        }
        return flat % static_cast<int>(owners);
    }

    tile::Block update_body(StageValues &values, const Substitution &environment, const std::vector<Expr> &places) {
        const tile::Buffer own = values.use(targets_.front());
        values.keep(index_, own, places);
        const Expr term = values.evaluate(update_.terms[0], environment, index_, &own);
        if (atomic_) {
            if (update_.combiner == Combiner::last || update_.combiner == Combiner::general) {
                user_error("kernel {}: stage '{}' is atomic(), and its update is no sum, product or extreme; remove atomic()", kernel_.name,
                           stage_.name());
            }
            tile::Block updates;
            for (const tile::Buffer &target : targets_) {
                updates.push_back({tile::Store{values.use(target).name, places, {term}, update_.combiner}});
            }
            return updates;
        }
        const bool replaces = update_.combiner == Combiner::last || update_.combiner == Combiner::general;
        const Expr value = replaces ? term : combine(update_.combiner, {tile::read(own, places)}, {term})[0];
        tile::Block stores{tile::Statement{tile::Store{own.name, places, {value}}}};
        for (std::size_t i = 1; i < targets_.size(); ++i) {
            stores.push_back({tile::Store{values.use(targets_[i]).name, places, {tile::read(own, places)}}});
        }
        return stores;
    }

    const Kernel &kernel_;
    const Placement &placement_;
    Storage &storage_;
    int index_;
    const Stage &stage_;
    ScatterUpdate update_;
    std::vector<tile::Buffer> targets_;
    bool atomic_, claims_;
    std::optional<tile::Buffer> claim_;  ///< for each place 1 + the number of the last update of it
};

}  // namespace

std::vector<tile::Launch> lower_scatter(const Kernel &kernel, const Placement &placement, int nest, Storage &storage,
                                        const ScheduledKernel &schedule, const GpuFacts &facts) {
    const ScheduledStage *scheduled = schedule.find(kernel.algorithm.stages[placement.nests[nest].anchor].name());
    return ScatterLowering(kernel, placement, nest, storage, scheduled && scheduled->find_flag("atomic")).run();
}

}  // namespace tilewright
