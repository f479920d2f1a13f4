// The readable form of algorithms: `softmax_sum[d0: 8, d1: s0] float32 = sum over r0: 4096 of exp(x(d0, d1, r0) - max(d0, d1))`.
#include <fmt/ranges.h>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Binding strength of what an expression prints as, as in C.
enum Precedence { lowest, logical_or, logical_and, equality, comparison, sum, product, prefix, atom };

class ExprPrinter {
public:
    std::string print(const Expr &e, int outer = lowest) {
        auto [text, strength] = print_node(e);
        return strength < outer ? "(" + text + ")" : text;
    }

    std::string print_list(const std::vector<Expr> &expressions) {
        std::string text;
        for (const Expr &e : expressions) {
            text += (text.empty() ? "" : ", ") + print(e);
        }
        return text;
    }

private:
    using Printed = std::pair<std::string, int>;

    template<typename Node> Printed infix(const Node *op, const char *symbol, int strength, bool associative = true) {
        return {print(op->a, strength) + " " + symbol + " " + print(op->b, associative ? strength : strength + 1), strength};
    }

    Printed print_node(const Expr &e) {
        switch (e->node_type) {
            case hi::IRNodeType::IntImm:
                return {std::to_string(e.as<hi::IntImm>()->value), e.as<hi::IntImm>()->value < 0 ? prefix : atom};
            case hi::IRNodeType::UIntImm: {
                std::uint64_t value = e.as<hi::UIntImm>()->value;
                return {e.type().is_bool() ? (value ? "true" : "false") : std::to_string(value), atom};
            }
            case hi::IRNodeType::FloatImm:
                return {print_float(e), atom};
            case hi::IRNodeType::Variable:
                return {e.as<hi::Variable>()->name, atom};
            case hi::IRNodeType::Add:
                return infix(e.as<hi::Add>(), "+", sum);
            case hi::IRNodeType::Sub:
                return infix(e.as<hi::Sub>(), "-", sum, false);
            case hi::IRNodeType::Mul:
                return infix(e.as<hi::Mul>(), "*", product);
            case hi::IRNodeType::Div:
                return infix(e.as<hi::Div>(), "/", product, false);
            case hi::IRNodeType::Mod:
                return infix(e.as<hi::Mod>(), "%", product, false);
            case hi::IRNodeType::EQ:
                return infix(e.as<hi::EQ>(), "==", equality, false);
            case hi::IRNodeType::NE:
                return infix(e.as<hi::NE>(), "!=", equality, false);
            case hi::IRNodeType::LT:
                return infix(e.as<hi::LT>(), "<", comparison, false);
            case hi::IRNodeType::LE:
                return infix(e.as<hi::LE>(), "<=", comparison, false);
            case hi::IRNodeType::GT:
                return infix(e.as<hi::GT>(), ">", comparison, false);
            case hi::IRNodeType::GE:
                return infix(e.as<hi::GE>(), ">=", comparison, false);
            case hi::IRNodeType::And:
                return infix(e.as<hi::And>(), "&&", logical_and);
            case hi::IRNodeType::Or:
                return infix(e.as<hi::Or>(), "||", logical_or);
            case hi::IRNodeType::Min:
                return function("min", {e.as<hi::Min>()->a, e.as<hi::Min>()->b});
            case hi::IRNodeType::Max:
                return function("max", {e.as<hi::Max>()->a, e.as<hi::Max>()->b});
            case hi::IRNodeType::Not:
                return {"!" + print(e.as<hi::Not>()->a, prefix), prefix};
            case hi::IRNodeType::Cast:
                return function(type_name(e), {e.as<hi::Cast>()->value});
            case hi::IRNodeType::Select: {
                const auto *op = e.as<hi::Select>();
                return function("select", {op->condition, op->true_value, op->false_value});
            }
            case hi::IRNodeType::Let: {
                const auto *op = e.as<hi::Let>();
                return {"(let " + op->name + " = " + print(op->value) + " in " + print(op->body) + ")", atom};
            }
            case hi::IRNodeType::Call:
                return print_call(e);
            default: {
                std::ostringstream text;
                text << e;
                return {text.str(), atom};
            }
        }
    }

    Printed print_call(const Expr &e) {
        const auto *op = e.as<hi::Call>();
        if (op->call_type == hi::Call::Halide && op->func.defined() && hi::Function(op->func).outputs() > 1) {
            return {fmt::format("{}({}).{}", op->name, print_list(op->args), op->value_index), atom};
        }
        std::string_view primitive = math::primitive_name(op);
        if (primitive == "convert") {
            return function(type_name(e), op->args);
        }
        if (primitive == "explicit_cast") {
            return function("cast_" + type_name(e), op->args);
        }
        return function(primitive.empty() ? op->name : std::string(primitive), op->args);
    }

    Printed function(const std::string &name, const std::vector<Expr> &arguments) {
        return {name + "(" + print_list(arguments) + ")", atom};
    }

    static std::string type_name(const Expr &e) { return std::string(name(from_halide(e.type()))); }

    static std::string print_float(const Expr &e) {
        double value = e.as<hi::FloatImm>()->value;
        std::string text = e.type().bits() == 64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
        bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
        return whole ? text + ".0" : text;
    }
};

/// A list of values whose shared parts stand below, under `where`.
struct PrintedValues {
    std::string text;
    std::string where;
};

/// Shared parts are called t0, t1, … from `count` on, so that equal values print alike.
PrintedValues print_values(const std::vector<Expr> &values, int &count) {
    PrintedValues result;
    for (const Expr &value : values) {
        Expr body = hi::common_subexpression_elimination(value);
        while (const auto *let = body.as<hi::Let>()) {
            const std::string name = fmt::format("t{}", count++);
            result.where += fmt::format("    where {} = {}\n", name, ExprPrinter().print(let->value));
            body = hi::substitute(let->name, hi::Variable::make(let->value.type(), name), let->body);
        }
        result.text += (result.text.empty() ? "" : ", ") + ExprPrinter().print(body);
    }
    if (values.size() != 1) {
        result.text = "(" + result.text + ")";
    }
    return result;
}

std::string print_axes(const std::vector<std::string> &names, const std::vector<Extent> &extents) {
    std::string text;
    for (size_t i = 0; i < names.size(); i++) {
        text += fmt::format("{}{}: {}", i ? ", " : "", names[i], i < extents.size() ? extents[i].to_string() : "?");
    }
    return text;
}

std::string print_types(const Halide::Func &func) {
    std::string text;
    for (const Halide::Type &type : func.types()) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name(from_halide(type)));
    }
    return func.outputs() == 1 ? text : "(" + text + ")";
}

std::string print_update(const Stage &stage, std::string &where) {
    if (auto scatter = match_scatter(stage.func)) {
        int count = 0;
        PrintedValues initial = print_values(scatter->initial, count), terms = print_values(scatter->terms, count);
        where = initial.where + terms.where;
        return fmt::format("{}, then {} at ({}) over {} of {}", initial.text, name(scatter->combiner),
                           ExprPrinter().print_list(scatter->places), print_axes(scatter->variables, stage.reduction_extents), terms.text);
    }
    auto fold = match_fold(stage.func);
    if (!fold) {
        return "an update of unknown form";
    }
    int count = 0;
    PrintedValues terms = print_values(fold->terms, count);
    where = terms.where;
    std::string kind = fold->scan_axis >= 0 ? " scan over " : " over ";
    return fmt::format("{}{}{} of {}", name(fold->combiner), kind, print_axes(fold->variables, stage.reduction_extents), terms.text);
}

}  // namespace

std::string print(const Stage &stage) {
    hi::Function function = stage.func.function();
    std::string head = fmt::format("{}[{}] {}", stage.name(), print_axes(function.args(), stage.extents), print_types(stage.func));
    std::string where, value;
    if (function.has_extern_definition()) {
        std::string arguments;
        for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
            std::string text = argument.is_func()          ? hi::Function(argument.func).name()
                               : argument.is_image_param() ? argument.image_param.name()
                               : argument.is_expr()        ? ExprPrinter().print(argument.expr)
                                                           : "?";
            arguments += (arguments.empty() ? "" : ", ") + text;
        }
        value = fmt::format("{}({})", function.extern_function_name(), arguments);
    } else if (function.has_update_definition()) {
        value = print_update(stage, where);
    } else {
        int count = 0;
        PrintedValues values = print_values(inline_lets(function.values()), count);
        where = values.where;
        value = values.text;
    }
    return head + " = " + value + "\n" + where;
}

std::string print(const Algorithm &algorithm) {
    std::string text;
    for (const auto &[symbol, range] : algorithm.symbols) {
        text += fmt::format("symbol {} in [{}, {}]\n", symbol, range.min, range.max);
    }
    for (const TensorInput &input : algorithm.inputs) {
        text += fmt::format("input {} {}\n", input.name(), input.meta.to_string());
    }
    for (const Stage &stage : algorithm.stages) {
        text += print(stage);
    }
    for (const TensorOutput &output : algorithm.outputs) {
        const Stage *stage = algorithm.find_stage(output.stage);
        bool tuple = stage && stage->func.outputs() > 1;
        text += fmt::format("output {} {} = {}{}\n", output.name, output.meta.to_string(), output.stage,
                            tuple ? fmt::format(".{}", output.tuple_index) : "");
    }
    return text;
}

}  // namespace tilewright
