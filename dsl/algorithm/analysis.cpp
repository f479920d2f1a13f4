#include "dsl/algorithm/analysis.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool mentions_any(const Expr &e, const std::vector<std::string> &names) {
    std::vector<std::string> mentioned = variables_of(e);
    return std::any_of(mentioned.begin(), mentioned.end(), [&](const std::string &name) { return contains(names, name); });
}

std::vector<const hi::Call *> reads_in(const Expr &e) {
    std::vector<const hi::Call *> reads;
    visit_reads(e, [&](const hi::Call *call) { reads.push_back(call); });
    return reads;
}

bool has_indirect_index(const std::vector<Expr> &values) {
    for (const Expr &value : values) {
        for (const hi::Call *call : reads_in(value)) {
            if (std::any_of(call->args.begin(), call->args.end(), is_indirect)) {
                return true;
            }
        }
    }
    return false;
}

/// Through conversions that leave the value readable as a factor.
Expr strip_conversions(Expr e) {
    while (const auto *call = e.as<hi::Call>()) {
        std::string_view name = math::primitive_name(call);
        if (name != "convert" && name != "explicit_cast") {
            break;
        }
        e = call->args[0];
    }
    return e;
}

std::optional<std::pair<Expr, Expr>> factors_of(const Expr &term) {
    Expr e = strip_conversions(term);
    if (const auto *product = e.as<hi::Mul>()) {
        return std::pair(product->a, product->b);
    }
    const auto *call = e.as<hi::Call>();
    if (call && math::primitive_name(call) == "mul") {
        return std::pair(call->args[0], call->args[1]);
    }
    return std::nullopt;
}

/// The factors of a sum of products of two tensors: both vary along the terms, and each along an axis of its own. A product of one row
/// (matrix times vector) has no axis of its own on one side, and is an ordinary reduction.
bool has_own_axes(const Expr &a, const Expr &b, const std::vector<std::string> &arguments, const std::vector<std::string> &variables) {
    auto varies_alone = [&](const Expr &factor, const Expr &other) {
        std::vector<std::string> own = variables_of(factor), others = variables_of(other);
        return std::any_of(arguments.begin(), arguments.end(),
                           [&](const std::string &name) { return contains(own, name) && !contains(others, name); });
    };
    return mentions_any(a, variables) && mentions_any(b, variables) && varies_alone(a, b) && varies_alone(b, a);
}

/// Of an index into a factor: no variable, one alone, or an argument times a constant, as the pixels of a strided window of one tap are.
enum class Place { fixed, single, strided, other };
Place place_of(const Expr &index, const std::vector<std::string> &arguments, const std::vector<std::string> &variables) {
    const auto *variable = index.as<hi::Variable>();
    if (variable && (contains(arguments, variable->name) || contains(variables, variable->name))) {
        return Place::single;
    }
    if (!mentions_any(index, arguments) && !mentions_any(index, variables)) {
        return Place::fixed;
    }
    const auto *product = index.as<hi::Mul>();
    const auto *factor = product ? product->a.as<hi::Variable>() : nullptr;
    return factor && contains(arguments, factor->name) && hi::is_const(product->b) ? Place::strided : Place::other;
}

/// The form of a sum of one term: products whose factors are read at single variables, or at pixels some places apart.
std::optional<Form> form_of_products(const Expr &term, const std::vector<std::string> &arguments,
                                     const std::vector<std::string> &variables) {
    const auto factors = factors_of(term);
    if (!factors || !has_own_axes(factors->first, factors->second, arguments, variables)) {
        return std::nullopt;
    }
    Form form = Form::contraction;
    for (const Expr &factor : {factors->first, factors->second}) {
        const std::vector<const hi::Call *> reads = reads_in(factor);
        for (const hi::Call *call : reads) {
            for (const Expr &index : call->args) {
                const Place place = place_of(index, arguments, variables);
                if (place == Place::other) {
                    return std::nullopt;
                }
                form = place == Place::strided ? Form::window : form;
            }
        }
        if (reads.empty()) {
            return std::nullopt;
        }
    }
    return form;
}

/// Whether an index adds an argument and a reduction variable: neighbouring elements read overlapping places.
bool is_window(const std::vector<Expr> &terms, const std::vector<std::string> &arguments, const std::vector<std::string> &variables) {
    for (const Expr &term : terms) {
        for (const hi::Call *call : reads_in(term)) {
            for (const Expr &index : call->args) {
                if (mentions_any(index, arguments) && mentions_any(index, variables)) {
                    return true;
                }
            }
        }
    }
    return false;
}

}  // namespace

Form classify(const Stage &stage) {
    hi::Function function = stage.func.function();
    if (function.has_extern_definition()) {
        return Form::sort;
    }
    if (!function.has_update_definition()) {
        return has_indirect_index(inline_lets(function.values())) ? Form::gather : Form::pointwise;
    }
    if (match_scatter(stage.func)) {
        return Form::scatter;
    }
    auto fold = match_fold(stage.func);
    if (!fold) {
        internal_error("stage {}: its update is no reduction, scan or scatter", stage.name());
    }
    if (fold->scan_axis >= 0) {
        return Form::scan;
    }
    if (fold->combiner == Combiner::sum && fold->terms.size() == 1) {
        if (const auto form = form_of_products(fold->terms[0], function.args(), fold->variables)) {
            return *form;
        }
    }
    return is_window(fold->terms, function.args(), fold->variables) ? Form::window : Form::reduction;
}

std::vector<Read> reads_of(const Stage &stage) {
    hi::Function function = stage.func.function();
    std::vector<Read> result;
    if (function.has_extern_definition()) {
        for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
            std::vector<Expr> indices;
            for (const std::string &name : function.args()) {
                indices.push_back(hi::Variable::make(Halide::Int(32), name));
            }
            if (argument.is_func()) {
                result.push_back({hi::Function(argument.func).name(), false, 0, indices});
            } else if (argument.is_image_param()) {
                result.push_back({argument.image_param.name(), true, 0, indices});
            }
        }
        return result;
    }
    std::map<std::pair<std::string, int>, std::vector<size_t>> seen;
    auto include = [&](const hi::Call *call) {
        if (call->name == function.name()) {
            return;
        }
        std::vector<size_t> &same = seen[{call->name, call->value_index}];
        for (size_t earlier : same) {
            const std::vector<Expr> &indices = result[earlier].indices;
            if (std::equal(indices.begin(), indices.end(), call->args.begin(), call->args.end(),
                           [](const Expr &a, const Expr &b) { return hi::graph_equal(a, b); })) {
                return;
            }
        }
        same.push_back(result.size());
        result.push_back({call->name, call->call_type == hi::Call::Image, call->value_index, call->args});
    };
    auto include_all = [&](const std::vector<Expr> &expressions) {
        for (const Expr &e : inline_lets(expressions)) {
            visit_reads(e, include);
        }
    };
    include_all(function.definition().values());
    for (const hi::Definition &update : function.updates()) {
        include_all(update.args());
        include_all(update.values());
    }
    return result;
}

std::vector<Expr> terms_of(const Stage &stage) {
    hi::Function function = stage.func.function();
    if (function.has_extern_definition()) {
        return {};
    }
    if (!function.has_update_definition()) {
        return inline_lets(function.values());
    }
    if (auto scatter = match_scatter(stage.func)) {
        return scatter->terms;
    }
    auto fold = match_fold(stage.func);
    return fold ? fold->terms : inline_lets(function.update(0).values());
}

namespace {

struct Sum {
    std::map<std::string, std::int64_t> terms;
    Expr constant;  ///< undefined for 0
};

Sum scaled(Sum sum, std::int64_t factor) {
    for (auto &[name, coefficient] : sum.terms) {
        coefficient *= factor;
    }
    if (sum.constant.defined()) {
        sum.constant = sum.constant * static_cast<int>(factor);
    }
    return sum;
}

Sum added(Sum a, const Sum &b) {
    for (const auto &[name, coefficient] : b.terms) {
        a.terms[name] += coefficient;
    }
    if (b.constant.defined()) {
        a.constant = a.constant.defined() ? a.constant + b.constant : b.constant;
    }
    return a;
}

std::optional<Sum> collect(const Expr &e, const std::vector<std::string> &variables) {
    if (const auto *variable = e.as<hi::Variable>(); variable && contains(variables, variable->name)) {
        return Sum{{{variable->name, 1}}, Expr()};
    }
    if (!mentions_any(e, variables)) {
        return Sum{{}, e};
    }
    auto both = [&](const Expr &a, const Expr &b, std::int64_t factor) -> std::optional<Sum> {
        auto left = collect(a, variables), right = collect(b, variables);
        return left && right ? std::optional(added(*left, scaled(*right, factor))) : std::nullopt;
    };
    if (const auto *op = e.as<hi::Add>()) {
        return both(op->a, op->b, 1);
    }
    if (const auto *op = e.as<hi::Sub>()) {
        return both(op->a, op->b, -1);
    }
    if (const auto *op = e.as<hi::Mul>()) {
        auto left = hi::as_const_int(op->a), right = hi::as_const_int(op->b);
        if (left || right) {
            auto sum = collect(left ? op->b : op->a, variables);
            return sum ? std::optional(scaled(*sum, left ? *left : *right)) : std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Affine> as_affine(const Expr &index, const std::vector<std::string> &variables) {
    auto sum = collect(inline_lets(index), variables);
    if (!sum) {
        return std::nullopt;
    }
    Affine affine;
    for (const auto &[name, coefficient] : sum->terms) {
        if (coefficient != 0) {
            affine.terms.emplace_back(name, coefficient);
        }
    }
    // Indices are integers: Halide's simplifier may fold their constants.
    affine.constant = sum->constant.defined() ? hi::simplify(sum->constant) : Expr(0);
    return affine;
}

}  // namespace tilewright
