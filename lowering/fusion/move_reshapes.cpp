#include "lowering/fusion/move_reshapes.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/fusion/free_name.h"
#include "lowering/fusion/index_map.h"
#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// A reduction's reads of itself, at its own place.
class SelfRenamer : public hi::IRGraphMutator {
public:
    SelfRenamer(std::string name, const Halide::Func &func, std::vector<Expr> place)
        : name_(std::move(name)), func_(func), place_(std::move(place)) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *call) override {
        return is_read(call) && call->name == name_ ? hi::Call::make(func_.function(), place_, call->value_index)
                                                    : hi::IRGraphMutator::visit(call);
    }

private:
    const std::string name_;
    const Halide::Func &func_;
    const std::vector<Expr> place_;
};

/// The old axes by their places over the new ones, and reads at indices in their simplest form.
class IndexSimplifier : public hi::IRGraphMutator {
public:
    IndexSimplifier(const std::map<std::string, Expr> &places, const std::vector<IndexAxis> &axes, const SamplePoints &samples)
        : places_(places), axes_(axes), samples_(samples) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Variable *variable) override {
        const auto found = places_.find(variable->name);
        return found == places_.end() ? Expr(variable) : found->second;
    }
    Expr visit(const hi::Call *call) override {
        Expr result = hi::IRGraphMutator::visit(call);
        const auto *moved = result.as<hi::Call>();
        if (!moved || !is_read(moved)) {
            return result;
        }
        std::vector<Expr> indices;
        for (const Expr &index : moved->args) {
            indices.push_back(simplest_index(index, axes_, samples_));
        }
        return hi::Call::make(moved->type, moved->name, indices, moved->call_type, moved->func, moved->value_index, moved->image,
                              moved->param);
    }

private:
    const std::map<std::string, Expr> &places_;
    const std::vector<IndexAxis> &axes_;
    const SamplePoints &samples_;
};

class ReshapeMover {
public:
    explicit ReshapeMover(const Algorithm &algorithm) : old_(algorithm) {
        for (const TensorInput &input : algorithm.inputs) {
            inputs_.emplace(input.name(), &input);
        }
        for (const Stage &stage : algorithm.stages) {
            names_.insert(stage.name());
        }
    }

    MovedReshapes run() {
        result_.algorithm.inputs = old_.inputs;
        result_.algorithm.outputs = old_.outputs;
        result_.algorithm.symbols = old_.symbols;
        result_.algorithm.stages.reserve(2 * old_.stages.size());
        for (const Stage &stage : old_.stages) {
            if (!move(stage) && !move_reduction(stage)) {
                add(stage);
            }
        }
        return std::move(result_);
    }

private:
    struct Known {
        std::vector<Extent> extents;
        std::vector<IndexAxis> axes;
        Expr map;                        ///< the read that an index map consists of; undefined for other stages
        bool depends_on_update = false;  ///< a stage that is not pointwise stands above
    };

    /// A read followed through index maps.
    struct Followed {
        std::string name;
        const TensorInput *input = nullptr;
        const std::vector<Extent> *extents = nullptr;
        std::vector<Expr> indices;
    };

    void add(const Stage &stage) {
        Known known;
        known.extents = stage.extents;
        const hi::Function function = stage.func.function();
        for (std::size_t i = 0; i < function.args().size(); ++i) {
            known.axes.push_back({function.args()[i], stage.extents[i]});
        }
        known.depends_on_update = function.has_extern_definition() || function.has_update_definition();
        for (const Read &read : reads_of(stage)) {
            const auto producer = known_.find(read.producer);
            known.depends_on_update |= producer != known_.end() && producer->second.depends_on_update;
        }
        if (!function.has_extern_definition() && !function.has_update_definition() && function.outputs() == 1) {
            const Expr value = inline_lets(function.values())[0];
            const auto *call = value.as<hi::Call>();
            const bool is_map = call && is_read(call) && !std::any_of(call->args.begin(), call->args.end(), contains_read);
            known.map = is_map ? value : Expr();
        }
        known_[stage.name()] = std::move(known);
        result_.algorithm.stages.push_back(stage);
    }

    Followed follow(const std::string &name, std::vector<Expr> indices) const {
        Followed followed{name, nullptr, nullptr, std::move(indices)};
        for (;;) {
            if (const auto input = inputs_.find(followed.name); input != inputs_.end()) {
                followed.input = input->second;
                followed.extents = &input->second->meta.sizes;
                return followed;
            }
            const Known &known = known_.at(followed.name);
            followed.extents = &known.extents;
            if (!known.map.defined()) {
                return followed;
            }
            std::map<std::string, Expr> values;
            for (std::size_t i = 0; i < known.axes.size(); ++i) {
                values[known.axes[i].name] = followed.indices[i];
            }
            const auto *call = known.map.as<hi::Call>();
            followed.indices.clear();
            for (const Expr &index : call->args) {
                followed.indices.push_back(bind_variables(index, values));
            }
            followed.name = call->name;
        }
    }

    bool move(const Stage &stage) {
        const hi::Function function = stage.func.function();
        if (function.has_extern_definition() || function.has_update_definition() || function.outputs() != 1 || stage.extents.empty()) {
            return false;
        }
        const Expr value = inline_lets(function.values())[0];
        if (const auto *call = value.as<hi::Call>(); call && is_read(call)) {
            return false;  // a map or a gather: nothing is computed
        }
        std::vector<IndexAxis> axes;
        for (std::size_t i = 0; i < function.args().size(); ++i) {
            axes.push_back({function.args()[i], stage.extents[i]});
        }
        // Spaces of products and rows first; a stage that stands in one already stays there.
        std::vector<std::vector<Extent>> spaces, cheap_spaces;
        bool stays = false;
        const std::vector<Read> reads = reads_of(stage);
        std::optional<SamplePoints> samples;
        for (const Read &read : reads) {
            if (read.from_input || std::any_of(read.indices.begin(), read.indices.end(), contains_read)) {
                continue;
            }
            const Followed source = follow(read.producer, read.indices);
            const bool has_work = !source.input && known_.at(source.name).depends_on_update;
            stays |= has_work && *source.extents == stage.extents;
            if (source.input || *source.extents == stage.extents || !(product(*source.extents) == product(stage.extents))) {
                continue;
            }
            samples = samples ? samples : std::optional(SamplePoints(axes, old_.symbols));
            if (is_reshape(source.indices, axes, *source.extents, *samples)) {
                (has_work ? spaces : cheap_spaces).push_back(*source.extents);
            }
        }
        if (!stays) {
            spaces.insert(spaces.end(), cheap_spaces.begin(), cheap_spaces.end());
        }
        for (const std::vector<Extent> &space : spaces) {
            if (move_to(stage, value, axes, reads, space)) {
                return true;
            }
        }
        return false;
    }

    bool move_to(const Stage &stage, const Expr &value, const std::vector<IndexAxis> &axes, const std::vector<Read> &reads,
                 const std::vector<Extent> &space) {
        const std::vector<Halide::Var> vars = argument_vars(static_cast<int>(space.size()));
        std::vector<IndexAxis> new_axes;
        for (std::size_t i = 0; i < space.size(); ++i) {
            new_axes.push_back({vars[i].name(), space[i]});
        }
        const SamplePoints samples(new_axes, old_.symbols);
        if (samples.is_empty()) {
            return false;
        }
        const std::map<std::string, Expr> places = places_in(axes, new_axes, samples);
        for (const Read &read : reads) {
            if (!reads_well(read, axes, places, new_axes, samples)) {
                return false;
            }
        }
        Stage computed = stage;
        computed.extents = space;
        computed.func = named_func(free_name(names_, stage.name() + "_flat"));
        computed.func(vars) = IndexSimplifier(places, new_axes, samples).mutate(value);
        result_.original_names[computed.name()] = stage.name();
        add(computed);
        add_reshape(stage, computed);
        return true;
    }

    /// A reduction of a computed value that is read with other axes of extent 1 than it has: without the ones, with the others.
    bool move_reduction(const Stage &stage) {
        const hi::Function function = stage.func.function();
        if (function.has_extern_definition() || !function.has_update_definition() || function.outputs() != 1 ||
            classify(stage) != Form::reduction) {
            return false;
        }
        std::vector<IndexAxis> axes;
        for (std::size_t i = 0; i < function.args().size(); ++i) {
            axes.push_back({function.args()[i], stage.extents[i]});
        }
        const std::size_t rank = axes.size();
        const auto &variables = function.update(0).schedule().rvars();
        for (std::size_t i = 0; i < variables.size(); ++i) {
            axes.push_back({variables[i].var, stage.reduction_extents[i]});
        }
        const SamplePoints samples(axes, old_.symbols);
        for (const Read &read : reads_of(stage)) {
            if (read.from_input || read.producer == stage.name() || std::any_of(read.indices.begin(), read.indices.end(), contains_read)) {
                continue;
            }
            Followed source = follow(read.producer, read.indices);
            const bool has_work = !source.input && known_.at(source.name).depends_on_update;
            for (Expr &index : source.indices) {
                index = samples.is_empty() ? index : simplest_index(index, axes, samples);
            }
            if (has_work && reads_at_variables(source.indices, axes)) {
                return rebuild_reduction(stage, {axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(rank)}, source);
            }
        }
        return false;
    }

    /// The reduction over the source's axes that it does not fold; false where only its own will do.
    bool rebuild_reduction(const Stage &stage, const std::vector<IndexAxis> &axes, const Followed &source) {
        std::vector<int> kept;  // for each new axis the old one that it is, or -1
        std::vector<Extent> extents;
        for (std::size_t i = 0; i < source.indices.size(); ++i) {
            const auto *variable = source.indices[i].as<hi::Variable>();
            const auto axis =
                std::find_if(axes.begin(), axes.end(), [&](const IndexAxis &a) { return variable && a.name == variable->name; });
            if (variable && axis == axes.end()) {
                continue;  // folded
            }
            if (!((*source.extents)[i] == (variable ? axis->extent : Extent(1)))) {
                return false;
            }
            kept.push_back(variable ? static_cast<int>(axis - axes.begin()) : -1);
            extents.push_back((*source.extents)[i]);
        }
        int last = -1;
        for (int axis : kept) {
            if (axis >= 0 && axis <= last) {
                return false;  // permuted
            }
            last = std::max(last, axis);
        }
        if (extents == stage.extents || !(product(extents) == product(stage.extents))) {
            return false;
        }
        const std::vector<Halide::Var> vars = argument_vars(static_cast<int>(extents.size()));
        std::map<std::string, Expr> places;
        for (const IndexAxis &axis : axes) {
            places[axis.name] = Expr(0);
        }
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (kept[i] >= 0) {
                places[axes[kept[i]].name] = vars[i];
            }
        }
        const hi::Function function = stage.func.function();
        Stage computed = stage;
        computed.extents = extents;
        computed.func = named_func(free_name(names_, stage.name() + "_flat"));
        computed.func(vars) = bind_variables(inline_lets(function.values())[0], places);
        SelfRenamer renamer(stage.name(), computed.func, {vars.begin(), vars.end()});
        const Expr update = renamer.mutate(bind_variables(inline_lets(function.update(0).values())[0], places));
        computed.func.function().define_update({vars.begin(), vars.end()}, {update});
        result_.original_names[computed.name()] = stage.name();
        add(computed);
        add_reshape(stage, computed);
        return true;
    }

    /// What the stage was called becomes a reshape of the one that computes it.
    void add_reshape(const Stage &stage, const Stage &computed) {
        Stage view = stage;
        view.op = "prims.reshape";
        view.reduction_extents.clear();
        view.func = named_func(stage.name());
        view.func(argument_vars(stage.rank())) =
            hi::Call::make(computed.func.function(), reshape_indices(stage.extents, computed.extents), 0);
        add(view);
    }

    /// Each of the old axes as an index over the new ones that have the same row-major numbers.
    static std::map<std::string, Expr> places_in(const std::vector<IndexAxis> &axes, const std::vector<IndexAxis> &new_axes,
                                                 const SamplePoints &samples) {
        std::vector<Extent> sizes, new_sizes;
        for (const IndexAxis &axis : axes) {
            sizes.push_back(axis.extent);
        }
        for (const IndexAxis &axis : new_axes) {
            new_sizes.push_back(axis.extent);
        }
        const std::vector<Expr> indices = reshape_indices(new_sizes, sizes);
        std::map<std::string, Expr> places;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            places[axes[i].name] = simplest_index(indices[i], new_axes, samples);
        }
        return places;
    }

    bool reads_well(const Read &read, const std::vector<IndexAxis> &axes, const std::map<std::string, Expr> &places,
                    const std::vector<IndexAxis> &new_axes, const SamplePoints &samples) const {
        if (std::any_of(read.indices.begin(), read.indices.end(), contains_read)) {
            return true;  // a gather costs the same wherever it stands
        }
        Followed before = follow(read.producer, read.indices);
        const SamplePoints old_samples(axes, old_.symbols);
        std::vector<Expr> now;
        for (Expr &index : before.indices) {
            now.push_back(simplest_index(bind_variables(index, places), new_axes, samples));
            index = simplest_index(index, axes, old_samples);
        }
        if (reads_at_variables(now, new_axes) || !reads_at_variables(before.indices, axes)) {
            return true;
        }
        const bool is_whole = is_reshape(now, new_axes, *before.extents, samples);
        if (!before.input) {
            return is_whole || !known_.at(before.name).depends_on_update;
        }
        return fold_view(before.input->meta, now, new_axes, samples).has_value() || !is_whole;
    }

    const Algorithm &old_;
    MovedReshapes result_;
    std::unordered_map<std::string, const TensorInput *> inputs_;
    std::unordered_map<std::string, Known> known_;
    std::set<std::string> names_;
};

}  // namespace

MovedReshapes move_reshapes(const Algorithm &algorithm) { return ReshapeMover(algorithm).run(); }

}  // namespace tilewright
