#include "lowering/cpu/build.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/cpu/buffer_constraints.h"
#include "lowering/cpu/centred_moments.h"
#include "lowering/cpu/func_values.h"
#include "lowering/cpu/outputs.h"
#include "lowering/cpu/padded_window.h"
#include "lowering/cpu/partial_fold.h"
#include "lowering/cpu/reduction_loops.h"
#include "lowering/cpu/tile_bounds.h"

namespace tilewright {

using Halide::Expr;
using Halide::Func;
namespace hi = Halide::Internal;

namespace {

class Builder {
public:
    Builder(const Kernel &kernel, const ScheduledKernel &scheduled)
        : kernel_(kernel), algorithm_(kernel.algorithm), scheduled_(scheduled) {}

    HalideKernel run() {
        make_inputs();
        for (const ScheduledStage &stage : scheduled_.stages) {
            make_stage(stage);
        }
        make_outputs(algorithm_, result_);
        make_arguments();
        return std::move(result_);
    }

private:
    void make_inputs() {
        for (const TensorInput &input : algorithm_.inputs) {
            Halide::ImageParam handle(to_halide(input.meta.dtype), input.meta.rank(), input.name());
            constrain(handle, input.meta);
            parameters_.push_back(handle);
            context_.inputs.emplace(input.param.name(), handle.parameter());
        }
    }

    void make_stage(const ScheduledStage &scheduled) {
        if (PackedInput::applies_to(scheduled, algorithm_)) {
            make_packed(scheduled);
        } else if (!scheduled.copy_of.empty()) {
            make_copy(scheduled);
        } else if (!scheduled.partial_of.empty()) {
            make_partial(scheduled);
        } else {
            make_own(scheduled);
        }
    }

    void make_packed(const ScheduledStage &scheduled) {
        const TensorInput &input = *algorithm_.find_input(scheduled.copy_of);
        const auto packed = std::make_shared<PackedInput>(input, static_cast<int>(&input - algorithm_.inputs.data()), scheduled);
        packs_[scheduled.copy_for].emplace_back(input.param.name(), packed);
        result_.packed.push_back(packed);
    }

    /// X.in(Y): the same values at the same places, kept near the reader.
    void make_copy(const ScheduledStage &scheduled) {
        Func copy = named_func(func_name(scheduled.name));
        const std::map<std::string, std::int64_t> tile = tile_extents(kernel_, scheduled_, scheduled);
        const std::map<std::string, Expr> clamps = clamps_of(scheduled, tile);
        std::vector<std::string> arguments;
        std::vector<Expr> places;
        for (const LoopAxis &axis : scheduled.axes) {
            if (axis.origin == LoopAxis::Origin::root) {
                arguments.push_back(axis.name);
                const auto clamp = clamps.find(axis.name);
                places.push_back(clamp != clamps.end() ? clamp->second : hi::Variable::make(Halide::Int(32), axis.name));
            }
        }
        if (const TensorInput *input = algorithm_.find_input(scheduled.copy_of)) {
            copy.function().define(arguments, {hi::Call::make(context_.inputs.at(input->param.name()), places)});
        } else {
            const hi::Function source = context_.functions.at(scheduled.copy_of);
            copy.function().define(arguments, values_at(source, places));
        }
        copies_[scheduled.copy_for].emplace_back(scheduled.copy_of, copy.function());
        result_.stages[scheduled.name] = {copy, std::nullopt, tile};
    }

    /// For axes whose tile may reach beyond their end: the nearest place inside.
    static std::map<std::string, Expr> clamps_of(const ScheduledStage &scheduled, const std::map<std::string, std::int64_t> &tile) {
        std::map<std::string, Expr> clamps;
        for (const LoopAxis &axis : scheduled.axes) {
            const auto size = tile.find(axis.name);
            const std::optional<std::int64_t> extent = axis.extent.constant();
            if (axis.origin == LoopAxis::Origin::root && size != tile.end() && size->second > 1 &&
                !(extent && *extent % size->second == 0)) {
                clamps[axis.name] = Halide::min(hi::Variable::make(Halide::Int(32), axis.name), to_halide(axis.extent) - 1);
            }
        }
        return clamps;
    }

    /// What the stage's own expressions read, its staged copies in the place of their sources.
    LegalizeContext context_of(const std::string &stage) const {
        LegalizeContext context = context_;
        if (const auto packs = packs_.find(stage); packs != packs_.end()) {
            context.input_packs = {packs->second.begin(), packs->second.end()};
        }
        const auto copies = copies_.find(stage);
        if (copies != copies_.end()) {
            for (const auto &[source, copy] : copies->second) {
                const TensorInput *input = algorithm_.find_input(source);
                (input ? context.input_copies[input->param.name()] : context.stage_copies[source]) = copy;
            }
        }
        return context;
    }

    void make_partial(const ScheduledStage &scheduled) {
        const Stage &owner = stage_named(scheduled.partial_of);
        Legalizer legalizer(context_of(owner.name()));
        const ScheduledStage &owner_scheduled = *scheduled_.find(owner.name());
        HalideStage made{named_func(func_name(scheduled.name))};
        if (has_centred_moments(owner, owner_scheduled, algorithm_.symbols)) {
            CentredMoments moments{named_func(func_name(owner.name() + "_sums")), named_func(func_name(owner.name() + "_centre")),
                                   made.func};
            define_centred_moments(moments, owner, scheduled, owner_scheduled, legalizer);
            made.companions = {moments.sums};
            made.centre = moments.centre;
            moments_.emplace(owner.name(), moments);
        } else {
            define_partial(made.func, owner, partial_loops(scheduled, owner_scheduled), legalizer);
        }
        note(legalizer, owner);
        partials_.emplace(owner.name(), made.func.function());
        result_.stages[scheduled.name] = made;
    }

    void make_own(const ScheduledStage &scheduled) {
        const Stage &stage = stage_named(scheduled.name);
        const hi::Function source = stage.func.function();
        Func func = named_func(func_name(stage.name()));
        HalideStage made{func};
        const auto partial = partials_.find(stage.name());
        if (source.has_extern_definition()) {
            define_extern(func, source);
        } else if (const auto moments = moments_.find(stage.name()); moments != moments_.end()) {
            define_from_centred(func, moments->second, stage, scheduled);
            made.is_fold_tree = true;
        } else if (partial != partials_.end()) {
            Legalizer legalizer(context_);
            made.is_fold_tree = define_from_partial(func, stage, scheduled, partial->second, legalizer);
        } else {
            define_computed(func, stage, scheduled, made);
        }
        context_.functions.insert_or_assign(stage.name(), func.function());
        result_.stages[scheduled.name] = made;
    }

    /// The stage's own definition, its folds in the schedule's loops; in an accumulator of its own where `func` only stores it.
    void define_computed(Func func, const Stage &stage, const ScheduledStage &scheduled, HalideStage &made) {
        const hi::Function source = stage.func.function();
        made.tile = tile_extents(kernel_, scheduled_, scheduled);
        Func computed = func;
        if (has_accumulator(kernel_, scheduled)) {
            computed = named_func(func_name(stage.name() + "_tile"));
            made.accumulator = computed;
        }
        LegalizeContext context = context_of(stage.name());
        context.functions.insert_or_assign(stage.name(), computed.function());
        ReductionLoops loops = reduction_loops(scheduled);
        context.reductions = loops.root_values;
        context.clamps = clamps_of(scheduled, made.tile);
        std::optional<Fold> fold = match_fold(stage.func);
        if (fold && fold->scan_axis < 0 && fold->combiner != Combiner::general && !made.tile.empty()) {
            pad(stage, *fold, context, made);
        }
        Legalizer legalizer(context);
        computed.function().define(source.args(), legalize_all(legalizer, source.values()));
        if (source.has_update_definition()) {
            define_update(computed, stage, fold, loops, legalizer);
        }
        if (made.accumulator) {
            func.function().define(source.args(), values_at(computed.function(), places_of(computed.function())));
        }
        note(legalizer, stage);
    }

    /// A window folded in tiles reads its input with its border around it.
    void pad(const Stage &stage, Fold &fold, LegalizeContext &context, HalideStage &made) {
        ExtentsByName extents;
        for (const TensorInput &input : algorithm_.inputs) {
            extents[input.param.name()] = input.meta.sizes;
        }
        for (const Stage &other : algorithm_.stages) {
            extents[other.name()] = other.extents;
        }
        const std::optional<PaddedRead> read = find_window_read(fold, extents);
        if (!read) {
            return;
        }
        Func padded = named_func(func_name(stage.name() + "_padded"));
        const std::vector<Halide::Var> variables = argument_vars(static_cast<int>(read->places.size()));
        std::vector<std::string> names;
        for (const Halide::Var &variable : variables) {
            names.push_back(variable.name());
        }
        LegalizeContext plain = context;
        plain.clamps.clear();
        Legalizer legalizer(plain);
        padded.function().define(names, {legalizer.mutate(padded_value(*read, extents, {variables.begin(), variables.end()}))});
        fold.terms = read_padded(fold, *read, extents, padded.function());
        context.padded = padded.name();
        made.padded = padded;
        collect_sources(read->call.as<hi::Call>()->name, made.padded_reads);
    }

    void collect_sources(const std::string &name, std::vector<std::string> &into) const {
        const Stage *stage = algorithm_.find_stage(name);
        if (!stage || std::find(into.begin(), into.end(), name) != into.end()) {
            return;
        }
        into.push_back(name);
        if (!stage->func.has_update_definition() && !stage->func.is_extern()) {
            for (const Read &read : reads_of(*stage)) {
                collect_sources(read.producer, into);
            }
        }
    }

    void define_update(Func func, const Stage &stage, const std::optional<Fold> &fold, ReductionLoops &loops, Legalizer &legalizer) {
        const hi::Definition &update = stage.func.function().update(0);
        // An accumulator's places are its own arguments, whatever its reads are clamped to.
        const std::vector<Expr> places = legalizer.clamps().empty() ? legalize_all(legalizer, update.args()) : update.args();
        std::vector<Expr> values;
        if (const auto factors = fold ? product_of(*fold) : std::nullopt) {
            values = {relaxed_product(values_at(func.function(), places)[0], *factors, legalizer)};
        } else {
            values = with_visible_dependencies(fold_values(func, stage, fold, places, legalizer), values_at(func.function(), places));
        }
        for (const Expr &guard : loops.guards) {
            loops.domain.where(guard);
        }
        if (!hi::is_const_one(update.predicate())) {
            loops.domain.where(legalizer.mutate(update.predicate()));
        }
        func.function().define_update(places, values, loops.domain);
    }

    std::vector<Expr> fold_values(const Func &func, const Stage &stage, const std::optional<Fold> &fold, const std::vector<Expr> &places,
                                  Legalizer &legalizer) {
        if (!fold || fold->scan_axis >= 0 || fold->combiner == Combiner::general) {
            return legalize_all(legalizer, stage.func.function().update(0).values());
        }
        // The terms may be read at clamped places, the accumulator is not.
        Legalizer plain;
        return legalize_all(plain, combine(fold->combiner, values_at(func.function(), places), legalize_all(legalizer, fold->terms)));
    }

    void define_extern(Func func, const hi::Function &source) {
        std::vector<Halide::ExternFuncArgument> arguments;
        for (const Halide::ExternFuncArgument &argument : source.extern_arguments()) {
            if (argument.is_func()) {
                arguments.emplace_back(Func(context_.functions.at(hi::Function(argument.func).name())));
            } else if (argument.is_image_param()) {
                arguments.emplace_back(context_.inputs.at(argument.image_param.name()));
            } else {
                arguments.push_back(argument);
            }
        }
        std::vector<Halide::Var> variables;
        for (const std::string &name : source.args()) {
            variables.emplace_back(name);
        }
        func.define_extern(source.extern_function_name(), arguments, source.output_types(), variables);
    }

    void note(const Legalizer &legalizer, const Stage &stage) {
        result_.uses_status = result_.uses_status || legalizer.uses_status();
        result_.checks_divisors = result_.checks_divisors || legalizer.checks_divisors();
        result_.has_relaxed_products = result_.has_relaxed_products || product_of(stage).has_value();
    }

    void make_arguments() {
        for (const Halide::ImageParam &parameter : parameters_) {
            result_.arguments.push_back(parameter);
        }
        for (const auto &packed : result_.packed) {
            result_.arguments.push_back(packed->packed());
        }
        for (const auto &[symbol, range] : algorithm_.symbols) {
            result_.symbols.push_back(symbol);
            result_.arguments.emplace_back(symbol, Halide::Argument::InputScalar, Halide::Int(32), 0, Halide::ArgumentEstimates{});
        }
        if (result_.uses_status) {
            result_.arguments.emplace_back(status_argument, Halide::Argument::InputScalar, Halide::Handle(), 0,
                                           Halide::ArgumentEstimates{});
        }
    }

    const Stage &stage_named(const std::string &name) const {
        const Stage *stage = algorithm_.find_stage(name);
        internal_assert(stage != nullptr, "the kernel has no stage {}", name);
        return *stage;
    }

    const Kernel &kernel_;
    const Algorithm &algorithm_;
    const ScheduledKernel &scheduled_;
    HalideKernel result_;
    LegalizeContext context_;
    std::vector<Halide::ImageParam> parameters_;
    std::map<std::string, hi::Function> partials_;                                     ///< by owner
    std::map<std::string, CentredMoments> moments_;                                    ///< by owner
    std::map<std::string, std::vector<std::pair<std::string, hi::Function>>> copies_;  ///< by reader: source and copy
    std::map<std::string, std::vector<std::pair<std::string, std::shared_ptr<const PackedInput>>>>
        packs_;  ///< by reader: parameter and its packed form
};

}  // namespace

HalideKernel build_kernel(const Kernel &kernel, const ScheduledKernel &scheduled) { return Builder(kernel, scheduled).run(); }

}  // namespace tilewright
