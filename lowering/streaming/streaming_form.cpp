#include "lowering/streaming/streaming_form.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/nests/nest.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/index_order.h"
#include "lowering/passes/operation.h"
#include "lowering/streaming/score_function.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

using Environment = std::map<std::string, Expr>;
constexpr std::int64_t widest_head = 256;
constexpr std::int64_t most_rows = 64;  ///< of a warpgroup's tile

/// A weight taken apart: the exponential's argument, and what scales it row by row.
struct Weight {
    Expr score, origin;
    std::vector<Expr> factors, divisors;
};

class Matcher {
public:
    Matcher(const Algorithm &algorithm, const GpuFacts &facts) : algorithm_(algorithm), facts_(facts) {}

    std::optional<StreamingForm> run() {
        if (!facts_.warpgroup_multiply || !facts_.bulk_copy || !find_stages() || !find_weights() || !find_first() || !find_reductions() ||
            !find_axes() || !find_outputs()) {
            return std::nullopt;
        }
        const ScoreFunction score = take_score_apart(weight_.score);
        form_.score = score.value;
        form_.masks = score.masks;
        form_.scale = score.scale;
        return std::move(form_);
    }

private:
    const Stage &stage(int index) const { return algorithm_.stages[index]; }
    Expr expand(const Expr &e, const Environment &environment) {
        return StageExpander(algorithm_, environment, known_).mutate(inline_lets(e));
    }
    Expr expanded_term(int index, Environment environment, const std::string &variable) {
        const auto fold = match_fold(stage(index).func);
        environment[fold->variables[0]] = hi::Variable::make(Halide::Int(32), variable);
        return expand(fold->terms[0], environment);
    }
    static bool reads(const Expr &e, const std::string &stage) {
        bool found = false;
        visit_reads(e, [&](const hi::Call *call) { found = found || call->name == stage; });
        return found;
    }

    bool find_stages() {
        std::vector<int> products, reductions;
        for (int i = 0; i < static_cast<int>(algorithm_.stages.size()); ++i) {
            const hi::Function function = stage(i).func.function();
            if (function.has_extern_definition()) {
                return false;
            }
            if (!function.has_update_definition()) {
                continue;
            }
            const auto fold = match_fold(stage(i).func);
            if (!fold || fold->scan_axis >= 0 || fold->variables.size() != 1 || fold->terms.size() != 1 ||
                !(stage(i).func.types()[0] == Halide::Float(32))) {
                return false;
            }
            if (classify(stage(i)) == Form::contraction && fold->combiner == Combiner::sum) {
                products.push_back(i);
            } else {
                reductions.push_back(i);
            }
        }
        if (products.size() != 2) {
            return false;
        }
        form_.first = products[0];
        form_.second = products[1];
        for (int i : reductions) {
            const Combiner combiner = match_fold(stage(i).func)->combiner;
            if (combiner == Combiner::maximum && form_.maximum < 0) {
                form_.maximum = i;
            } else if (combiner == Combiner::sum) {
                form_.totals.push_back(i);
            } else {
                return false;
            }
        }
        form_.axes = stage(form_.second).func.function().args();
        form_.streamed = match_fold(stage(form_.second).func)->variables[0];
        form_.depth = "depth";
        form_.streamed_extent = stage(form_.second).reduction_extents[0];
        form_.depth_extent = stage(form_.first).reduction_extents[0];
        return form_.maximum >= 0 && form_.axes.size() >= 2;
    }

    /// The second product's factors: weights, and a tensor.
    bool find_weights() {
        const Expr term = expanded_term(form_.second, places_on_axes(stage(form_.second), form_.axes), form_.streamed);
        const Operation product = operation_of(term);
        if (product.name != "mul") {
            return false;
        }
        const std::string &first = stage(form_.first).name();
        const bool left = reads(product.operands[0], first);
        const hi::Call *value = operand_of(product.operands[left ? 1 : 0]);
        const auto weight = take_apart(product.operands[left ? 0 : 1]);
        if (!value || !weight || left == reads(product.operands[1], first)) {
            return false;
        }
        value_ = value;
        weight_ = *weight;
        Expr factor;
        for (const Expr &e : weight_.factors) {
            factor = factor.defined() ? factor * e : e;
        }
        for (const Expr &e : weight_.divisors) {
            factor = factor.defined() ? factor / e : Halide::Internal::make_one(e.type()) / e;
        }
        form_.row_factor = factor;
        return true;
    }

    bool varies_in_row(const Expr &e) const { return mentions(e, form_.streamed) || reads(e, stage(form_.first).name()); }

    std::optional<Weight> take_apart(const Expr &e) const {
        const Operation op = operation_of(e);
        if (is_float_conversion(e, op)) {
            return take_apart(op.operands[0]);
        }
        if (op.name == "div" && !varies_in_row(op.operands[1])) {
            auto weight = take_apart(op.operands[0]);
            if (weight) {
                weight->divisors.push_back(op.operands[1]);
            }
            return weight;
        }
        if (op.name == "mul") {
            const int varying = varies_in_row(op.operands[0]) ? 0 : 1;
            auto weight = varies_in_row(op.operands[1 - varying]) ? std::nullopt : take_apart(op.operands[varying]);
            if (weight) {
                weight->factors.push_back(op.operands[1 - varying]);
            }
            return weight;
        }
        if (op.name != "exp") {
            return std::nullopt;
        }
        const Operation difference = operation_of(op.operands[0]);
        if (difference.name != "sub" || varies_in_row(difference.operands[1])) {
            return std::nullopt;
        }
        return Weight{difference.operands[0], difference.operands[1], {}, {}};
    }

    /// The first product as the score reads it: at one place.
    bool find_first() {
        std::set<std::vector<Expr>, IndexOrder> places;
        visit_reads(weight_.score, [&](const hi::Call *call) {
            if (call->name == stage(form_.first).name()) {
                places.insert(call->args);
            }
        });
        if (places.size() != 1) {
            return false;
        }
        const std::vector<std::string> &arguments = stage(form_.first).func.function().args();
        Environment environment;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            environment[arguments[i]] = (*places.begin())[i];
        }
        const Operation product = operation_of(expanded_term(form_.first, environment, form_.depth));
        if (product.name != "mul") {
            return false;
        }
        const int key = mentions(product.operands[0], form_.streamed) ? 0 : 1;
        const hi::Call *keys = operand_of(product.operands[key]), *queries = operand_of(product.operands[1 - key]);
        if (!keys || !queries || mentions(product.operands[1 - key], form_.streamed)) {
            return false;
        }
        key_ = keys;
        query_ = queries;
        return true;
    }

    /// The maximum is that of the score, and totals sum the same exponentials.
    bool find_reductions() {
        // The origin is the maximum, or 0 in a row without one.
        const Operation origin = operation_of(weight_.origin);
        Expr read = weight_.origin;
        if (origin.name == "select") {
            const Operation test = operation_of(origin.operands[0]);
            if (test.name != "eq" || !is_negative_infinity(test.operands[1]) || float_constant(origin.operands[1]) != 0 ||
                !hi::graph_equal(test.operands[0], origin.operands[2])) {
                return false;
            }
            read = origin.operands[2];
        }
        const auto *call = read.as<hi::Call>();
        if (!call || call->name != stage(form_.maximum).name() ||
            !hi::graph_equal(expanded_term(form_.maximum, places_on_axes(stage(form_.maximum), form_.axes), form_.streamed),
                             weight_.score)) {
            return false;
        }
        return std::all_of(form_.totals.begin(), form_.totals.end(), [&](int total) {
            const auto weight = take_apart(expanded_term(total, places_on_axes(stage(total), form_.axes), form_.streamed));
            return weight && weight->factors.empty() && weight->divisors.empty() && hi::graph_equal(weight->score, weight_.score) &&
                   hi::graph_equal(weight->origin, weight_.origin);
        });
    }

    /// A plain read of a tensor of a half type, below conversions; nullptr where it is none.
    const hi::Call *operand_of(Expr e) {
        for (Operation op = operation_of(e); is_float_conversion(e, op); op = operation_of(e)) {
            e = op.operands[0];
        }
        const auto *call = e.as<hi::Call>();
        const bool half = (e.type().is_float() || e.type().is_bfloat()) && e.type().bits() == 16;
        if (!call || call->call_type != hi::Call::Image || !half || (form_.type.bits() == 16 && form_.type != e.type())) {
            return nullptr;
        }
        form_.type = e.type();
        operands_.push_back(e);
        return call;
    }

    // ---- Axes ----
    static bool mentions_any(const hi::Call *read, const std::string &name) {
        return std::any_of(read->args.begin(), read->args.end(), [&](const Expr &index) { return mentions(index, name); });
    }

    bool find_axes() {
        for (int i = 0; i < static_cast<int>(form_.axes.size()); ++i) {
            const std::string &axis = form_.axes[i];
            const bool in_score = mentions(weight_.score, axis) || mentions_any(query_, axis) || mentions_any(key_, axis);
            if (mentions_any(value_, axis) && !in_score) {
                if (form_.column >= 0) {
                    return false;
                }
                form_.column = i;
            } else if (mentions_any(query_, axis) && !mentions_any(key_, axis) && !mentions_any(value_, axis)) {
                form_.row = i;  // the last of several
            }
        }
        if (form_.column >= 0 && form_.row < 0) {
            find_group();
        }
        if (form_.column < 0 || form_.row < 0) {
            return false;
        }
        const Extent &width = stage(form_.second).extents[form_.column];
        const auto fits = [](const Extent &e) { return e.is_constant() && e.value() >= 1 && e.value() <= widest_head; };
        return fits(width) && fits(form_.depth_extent) &&
               (form_.group == 1 ? describe_row() : describe(form_.query, query_, form_.depth, form_.axes[form_.row])) &&
               describe(form_.key, key_, form_.depth, form_.streamed) &&
               describe(form_.value, value_, form_.axes[form_.column], form_.streamed);
    }

    /// The read as tiles for the copy unit, along both axes.
    bool describe(StreamedOperand &operand, const hi::Call *read, const std::string &inner, const std::string &outer) const {
        const auto found = streamed_operand(algorithm_, read, inner, outer);
        operand = found.value_or(StreamedOperand{});
        return operand.outer >= 0;
    }
    /// A tile of one row runs along the dimension that has no other.
    bool describe_row() {
        const auto found = streamed_operand(algorithm_, query_, form_.depth, "");
        form_.query = found.value_or(StreamedOperand{});
        const TensorMeta *meta = found ? &algorithm_.inputs[found->input].meta : nullptr;
        for (int i = 0; meta && i < static_cast<int>(found->indices.size()); ++i) {
            if (i != found->inner && meta->sizes[i] == Extent(1) && mod(meta->strides[i] * Extent(form_.type.bytes()), 16) == Extent(0)) {
                form_.query.outer = i;
            }
        }
        return form_.query.outer >= 0;
    }

    /// One row: an axis along which several places share keys and values, axis / group, or the axis of that one row.
    void find_group() {
        for (int i = 0; i < static_cast<int>(form_.axes.size()); ++i) {
            const Extent &extent = stage(form_.second).extents[i];
            const int group = i == form_.column ? 0 : shared_places(form_.axes[i]);
            if (group > 1 && extent.is_constant() && extent.value() % group == 0) {
                form_.row = i;
                form_.group = group;
                return;
            }
            if (i != form_.column && extent == Extent(1)) {
                form_.row = i;
                form_.group = 1;
            }
        }
    }
    /// How many neighbours along the axis read the same keys and values; 0 where that is not known or they do not fit a tile.
    int shared_places(const std::string &axis) const {
        std::int64_t group = 0;
        for (const hi::Call *read : {key_, value_}) {
            for (const Expr &index : read->args) {
                if (!mentions(index, axis)) {
                    continue;
                }
                const auto *quotient = index.as<hi::Div>();
                const auto divisor = quotient && as_variable(quotient->a) == axis ? hi::as_const_int(quotient->b) : std::nullopt;
                if (!divisor || (group != 0 && group != *divisor) || *divisor > most_rows) {
                    return 0;
                }
                group = *divisor;
            }
        }
        return static_cast<int>(group);
    }

    /// Stored stages read the second product and the rows' reductions at their own places only.
    bool find_outputs() {
        for (int i = 0; i < static_cast<int>(algorithm_.stages.size()); ++i) {
            const bool stored = std::any_of(algorithm_.outputs.begin(), algorithm_.outputs.end(),
                                            [&](const TensorOutput &o) { return o.stage == stage(i).name(); });
            if (!stored) {
                continue;
            }
            if (i == form_.first || stage(i).func.outputs() != 1 || !fits_axes(stage(i))) {
                return false;
            }
            const Environment environment = places_on_axes(stage(i), form_.axes);
            bool in_place = true;
            if (!stage(i).func.function().has_update_definition()) {
                const Expr value = expand(stage(i).func.function().definition().values()[0], environment);
                in_place = !mentions(value, form_.streamed);
                visit_reads(value, [&](const hi::Call *call) {
                    const int producer = call->call_type == hi::Call::Image ? -1 : stage_index(algorithm_, call->name);
                    in_place = in_place && producer != form_.first && (producer < 0 || is_in_place(call, stage(producer)));
                });
            }
            if (!in_place) {
                return false;
            }
            form_.outputs.push_back(i);
        }
        return std::any_of(form_.outputs.begin(), form_.outputs.end(), [&](int i) {
            return static_cast<int>(stage(i).extents.size()) > form_.column &&
                   stage(i).extents[form_.column] == stage(form_.second).extents[form_.column];
        });
    }
    bool fits_axes(const Stage &output) const {
        const std::vector<Extent> &space = stage(form_.second).extents;
        for (std::size_t i = 0; i < output.extents.size(); ++i) {
            if (i >= space.size() || !(output.extents[i] == space[i] || output.extents[i] == Extent(1))) {
                return false;
            }
        }
        return true;
    }
    bool is_in_place(const hi::Call *call, const Stage &producer) const {
        const Environment places = places_on_axes(producer, form_.axes);
        const std::vector<std::string> &arguments = producer.func.function().args();
        for (std::size_t i = 0; i < call->args.size(); ++i) {
            if (!(producer.extents[i] == Extent(1)) && !hi::equal(call->args[i], places.at(arguments[i]))) {
                return false;
            }
        }
        return true;
    }

    const Algorithm &algorithm_;
    const GpuFacts &facts_;
    StreamingForm form_;
    Weight weight_;
    const hi::Call *query_ = nullptr, *key_ = nullptr, *value_ = nullptr;
    std::vector<Expr> operands_;  ///< keeps those alive
    StageExpander::Known known_;
};

}  // namespace

std::optional<StreamingForm> match_streaming(const Algorithm &algorithm, const GpuFacts &facts) { return Matcher(algorithm, facts).run(); }

}  // namespace tilewright
