#include "lowering/nests/finish_reductions.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/nests/special_forms.h"
#include "lowering/nests/split_reduction.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int columns = 32;               // neighbouring elements, one a lane
constexpr std::int64_t most_shares = 32;  // threads that share the parts of one element
constexpr std::int64_t most_at_once = 8;  // loads of one thread under way

/// Reductions of equal extents and equally many parts, in one launch.
class FinishLaunch {
public:
    FinishLaunch(NestWork &work, std::vector<const SplitValue *> sums)
        : work_(work),
          sums_(std::move(sums)),
          extents_(work.stage(sums_[0]->stage).extents),
          elements_(product(extents_)),
          values_(work.kernel, nest_, work.placement, work.storage, launch_) {
        shape();
    }

    tile::Launch run(std::set<int> &finished) {
        std::vector<Expr> part_guards = element_guards();
        const tile::Axis &part = nest_.axes[1];
        if (!part.exact()) {
            part_guards.push_back(tile::variable("part") < to_halide(part.extent));
        }
        tile::Block start, folds, combine;
        for (const SplitValue *sum : sums_) {
            add_sum(*sum, start, folds, combine);
        }
        tile::For at_once{"part_at_once", part.leaves[1].extent, Level::unroll, guarded(part_guards, folds)};
        tile::For round{"part_round", part.leaves[0].extent, Level::loop, {{std::move(at_once)}}};
        launch_.body = start;
        launch_.body.push_back({std::move(round)});
        launch_.body.insert(launch_.body.end(), combine.begin(), combine.end());
        tile::Block stores = store_sums();
        add_readers(stores, finished);
        std::vector<Expr> writer = element_guards();
        writer.push_back(tile::variable("part_share") == 0);
        const tile::Block last = guarded(writer, stores);
        launch_.body.insert(launch_.body.end(), last.begin(), last.end());
        return std::move(launch_);
    }

private:
    void shape() {
        const Extent parts = sums_[0]->part_count;
        std::int64_t shares = 8;
        while (shares < most_shares && parts.is_constant() && shares * most_at_once < parts.value()) {
            shares *= 2;
        }
        const std::int64_t steps = parts.is_constant() ? (parts.value() + shares - 1) / shares : most_at_once;
        const std::int64_t at_once = std::min(steps, most_at_once);
        tile::Axis element{
            "element",
            elements_,
            {{"element_block", ceil_div(elements_, columns), Level::grid, columns, 1}, {"element_lane", columns, Level::thread, 1, 1}}};
        tile::Axis part{"part",
                        parts,
                        {{"part_round", ceil_div(parts, shares * at_once), Level::loop, shares * at_once, 1},
                         {"part_at_once", at_once, Level::unroll, shares, 1},
                         {"part_share", shares, Level::thread, 1, columns}}};
        nest_.axes = {element, part};
        for (const auto &[name, range] : work_.kernel.algorithm.symbols) {
            nest_.ranges[name] = range;
        }
        nest_.ranges["element"] = {0, std::max<std::int64_t>(elements_.bounds(work_.kernel.algorithm.symbols).max - 1, 0)};
        launch_.name = identifier(work_.kernel.name + "_" + work_.stage(sums_[0]->stage).name() + "_finish");
        launch_.axes = nest_.axes;
        launch_.blocks = ceil_div(elements_, columns);
        launch_.threads = static_cast<int>(columns * shares);
        places_ = unflatten(extents_, tile::variable("element"));
    }

    std::vector<Expr> element_guards() const {
        return nest_.axes[0].exact() ? std::vector<Expr>() : std::vector<Expr>{tile::variable("element") < to_halide(elements_)};
    }

    void add_sum(const SplitValue &sum, tile::Block &start, tile::Block &folds, tile::Block &combine) {
        const Stage &s = work_.stage(sum.stage);
        launch_.combiners.push_back(sum.definition);
        tile::Buffer total = tile::dense_buffer(identifier(s.name()) + "_total", s.func.types(), tile::Memory::registers, {});
        total.combiner = total.types.size() > 1 ? sum.definition.name : "";
        tile::Buffer exchange = total;
        exchange.name += "_exchange";
        exchange.memory = tile::Memory::shared;
        exchange.extents = {launch_.threads};
        exchange.strides = {1};
        launch_.buffers.push_back(total);
        launch_.buffers.push_back(exchange);
        std::vector<Expr> terms;
        for (tile::Buffer flat : sum.partials) {
            flat.extents = {sum.part_count, elements_};
            flat.strides = {elements_, 1};
            launch_.buffers.push_back(flat);
            terms.push_back(tile::read(flat, {tile::variable("part"), tile::variable("element")}));
        }
        const int shares = launch_.threads / columns;
        start.push_back({tile::Store{total.name, {}, sum.definition.identity}});
        folds.push_back({tile::Fold{total.name, sum.definition.name, {}, terms}});
        combine.push_back({tile::Combine{total.name, sum.definition.name, {}, {{shares, columns}}, exchange.name, 1}});
        if (!is_identity(sum.fold.initial, sum.definition.identity)) {
            combine.push_back({tile::Fold{total.name, sum.definition.name, {}, initial_of(sum, s)}});
        }
        Member member;
        member.stage = sum.stage;
        member.places = places_;
        member.axes = {"element"};
        nest_.members.push_back(std::move(member));
        values_.keep(sum.stage, total, {});
        totals_.push_back(total);
    }
    std::vector<Expr> initial_of(const SplitValue &sum, const Stage &s) const {
        std::vector<Expr> initial;
        for (const Expr &e : sum.fold.initial) {
            if (contains_read(e)) {
                user_error("kernel {}: the initial value of '{}' is read from a tensor, so its reduction cannot be split over blocks",
                           work_.kernel.name, s.name());
            }
            initial.push_back(substitute_variables(e, environment_of(s)));
        }
        return initial;
    }
    Substitution environment_of(const Stage &s) const {
        Substitution environment;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            environment[s.func.function().args()[i]] = places_[i];
        }
        return environment;
    }

    tile::Block store_sums() {
        tile::Block stores;
        for (std::size_t k = 0; k < sums_.size(); ++k) {
            for (std::size_t i = 0; i < totals_[k].types.size(); ++i) {
                store(sums_[k]->stage, static_cast<int>(i), tile::read(totals_[k], {}, static_cast<int>(i)), stores);
            }
        }
        return stores;
    }
    void store(int stage, int element, const Expr &value, tile::Block &stores) {
        for (const tile::Buffer &target : work_.storage.targets(stage, element)) {
            values_.use(target);
            stores.push_back({tile::Store{target.name, places_, {value}}});
        }
    }

    void add_readers(tile::Block &stores, std::set<int> &finished) {
        for (const Nest &nest : work_.placement.nests) {
            const bool served = &nest != &work_.nest && std::all_of(nest.members.begin(), nest.members.end(), [&](const Member &m) {
                const Stage &stage = work_.stage(m.stage);
                return classify(stage) == Form::pointwise && stage.extents == extents_ && reads_in_place(m.stage);
            });
            if (!served || nest.members.empty() || finished.count(nest.anchor)) {
                continue;
            }
            for (const Member &m : nest.members) {
                const auto values = work_.stage(m.stage).func.function().definition().values();
                for (std::size_t k = 0; k < values.size(); ++k) {
                    store(m.stage, static_cast<int>(k), values_.evaluate(values[k], environment_of(work_.stage(m.stage)), m.stage), stores);
                }
            }
            finished.insert(nest.anchor);
        }
    }
    /// Whether the stage reads one of the sums, those only at its own place, and no other stage that has a nest.
    bool reads_in_place(int index) const {
        bool reads_sum = false;
        return is_in_place(index, reads_sum) && reads_sum;
    }
    bool is_in_place(int index, bool &reads_sum) const {
        const Stage &stage = work_.stage(index);
        for (const Read &read : reads_of(stage)) {
            const int producer = read.from_input ? -1 : stage_index(work_.kernel.algorithm, read.producer);
            if (producer < 0) {
                continue;
            }
            const bool is_sum = std::any_of(sums_.begin(), sums_.end(), [&](const SplitValue *s) { return s->stage == producer; });
            const int placed = work_.placement.nest_of[producer];
            if (!is_sum && placed >= 0) {
                return false;
            }
            const auto &arguments = stage.func.function().args();
            bool own = read.indices.size() == arguments.size();
            for (std::size_t i = 0; own && i < arguments.size(); ++i) {
                own = as_variable(read.indices[i]) == arguments[i];
            }
            if (!own || (!is_sum && !is_in_place(producer, reads_sum))) {
                return false;
            }
            reads_sum = reads_sum || is_sum;
        }
        return true;
    }

    NestWork &work_;
    std::vector<const SplitValue *> sums_;
    std::vector<Extent> extents_;
    Extent elements_;
    Nest nest_;
    tile::Launch launch_;
    StageValues values_;
    std::vector<Expr> places_;  ///< of the element
    std::vector<tile::Buffer> totals_;
};

}  // namespace

std::vector<tile::Launch> finish_reductions(NestWork &work, std::set<int> &finished) {
    std::vector<std::vector<const SplitValue *>> groups;
    for (const SplitValue &sum : work.split_sums) {
        const auto fits = [&](const auto &group) {
            return work.stage(group[0]->stage).extents == work.stage(sum.stage).extents && group[0]->part_count == sum.part_count;
        };
        auto group = std::find_if(groups.begin(), groups.end(), fits);
        if (group == groups.end()) {
            group = groups.insert(groups.end(), std::vector<const SplitValue *>());
        }
        group->push_back(&sum);
    }
    std::vector<tile::Launch> launches;
    for (const auto &group : groups) {
        launches.push_back(FinishLaunch(work, group).run(finished));
    }
    return launches;
}

}  // namespace tilewright
