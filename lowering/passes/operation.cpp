#include "lowering/passes/operation.h"

#include <cmath>
#include <limits>
#include <map>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

template<typename Node> bool take_binary(const Expr &e, const char *name, Operation &operation) {
    if (const auto *op = e.as<Node>()) {
        operation = {name, {op->a, op->b}};
        return true;
    }
    return false;
}

Operation operation_of_call(const hi::Call *op) {
    static const std::map<std::string, std::string> strict = {{"strict_add", "add"}, {"strict_sub", "sub"}, {"strict_mul", "mul"},
                                                              {"strict_div", "div"}, {"strict_lt", "lt"},   {"strict_le", "le"},
                                                              {"strict_eq", "eq"},   {"strict_max", "max"}, {"strict_min", "min"}};
    static const std::map<std::string, std::string> renamed = {
        {"div_true", "div"}, {"maximum", "max"}, {"minimum", "min"}, {"explicit_cast", "convert"}};
    if (is_read(op)) {
        return {};
    }
    if (const auto found = strict.find(op->name); found != strict.end()) {
        return {found->second, op->args};
    }
    if (op->name == "strict_float" || op->is_intrinsic(hi::Call::likely)) {
        return operation_of(op->args[0]);
    }
    const std::string name(math::primitive_name(op));
    const auto found = renamed.find(name);
    return {found == renamed.end() ? name : found->second, op->args};
}

}  // namespace

Operation operation_of(const Expr &e) {
    Operation result;
    if (take_binary<hi::Add>(e, "add", result) || take_binary<hi::Sub>(e, "sub", result) || take_binary<hi::Mul>(e, "mul", result) ||
        take_binary<hi::Div>(e, "div", result) || take_binary<hi::LT>(e, "lt", result) || take_binary<hi::LE>(e, "le", result) ||
        take_binary<hi::GT>(e, "gt", result) || take_binary<hi::GE>(e, "ge", result) || take_binary<hi::EQ>(e, "eq", result) ||
        take_binary<hi::NE>(e, "ne", result) || take_binary<hi::And>(e, "and", result) || take_binary<hi::Or>(e, "or", result) ||
        take_binary<hi::Min>(e, "min", result) || take_binary<hi::Max>(e, "max", result)) {
        return result;
    }
    if (const auto *op = e.as<hi::Not>()) {
        return {"not", {op->a}};
    }
    if (const auto *op = e.as<hi::Select>()) {
        return {"select", {op->condition, op->true_value, op->false_value}};
    }
    if (const auto *op = e.as<hi::Cast>()) {
        return {"convert", {op->value}};
    }
    if (const auto *op = e.as<hi::Call>()) {
        return operation_of_call(op);
    }
    return {};
}

double float_constant(const Expr &e) {
    if (const auto *op = e.as<hi::FloatImm>()) {
        return op->value;
    }
    const Operation operation = operation_of(e);
    if (operation.name == "convert" && e.type().is_float() && operation.operands[0].type().is_float()) {
        return float_constant(operation.operands[0]);
    }
    if (operation.name == "neg") {
        return -float_constant(operation.operands[0]);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

bool is_float_conversion(const Expr &e, const Operation &op) {
    return op.name == "convert" && (e.type().is_float() || e.type().is_bfloat()) &&
           (op.operands[0].type().is_float() || op.operands[0].type().is_bfloat());
}

bool is_negative_infinity(const Expr &e) {
    const double value = float_constant(e);
    return std::isinf(value) && value < 0;
}

bool is_positive_zero(const Expr &e) {
    if (!e.type().is_float()) {
        return Halide::Internal::is_const_zero(e);
    }
    const double value = float_constant(e);
    return value == 0 && !std::signbit(value);
}

}  // namespace tilewright
