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

/// A contraction's factors: each constant along an axis the other varies along, and read at single variables.
bool is_contraction(const Expr &term, const std::vector<std::string> &arguments, const std::vector<std::string> &variables) {
    auto factors = factors_of(term);
    if (!factors) {
        return false;
    }
    std::vector<std::string> all = arguments;
    all.insert(all.end(), variables.begin(), variables.end());
    auto read_at_single_variables = [&](const Expr &factor) {
        std::vector<const hi::Call *> reads = reads_in(factor);
        return !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const hi::Call *call) {
            return std::all_of(call->args.begin(), call->args.end(), [&](const Expr &index) {
                const auto *variable = index.as<hi::Variable>();
                return (variable && contains(all, variable->name)) || !mentions_any(index, all);
            });
        });
    };
    auto varies_alone = [&](const Expr &factor, const Expr &other) {
        std::vector<std::string> own = variables_of(factor), others = variables_of(other);
        return std::any_of(arguments.begin(), arguments.end(),
                           [&](const std::string &a) { return contains(own, a) && !contains(others, a); });
    };
    const auto &[a, b] = *factors;
    bool share_reduction = mentions_any(a, variables) && mentions_any(b, variables);
    // A product of one row (matrix times vector) has no axis of its own on one side, and is an ordinary reduction.
    return share_reduction && read_at_single_variables(a) && read_at_single_variables(b) && varies_alone(a, b) && varies_alone(b, a);
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
    if (fold->combiner == Combiner::sum && fold->terms.size() == 1 && is_contraction(fold->terms[0], function.args(), fold->variables)) {
        return Form::contraction;
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
