#include "lowering/cuda/expression_printer.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

std::string cuda_type(Halide::Type type) {
    if (type.is_bool()) {
        return "bool";
    }
    if (type.is_bfloat()) {
        return "tw::bfloat16";
    }
    if (type.is_float()) {
        return type.bits() == 16 ? "tw::half" : type.bits() == 32 ? "float" : "double";
    }
    if (type.is_int() && type.bits() == 32) {
        return "int";
    }
    return fmt::format("tw::{}int{}", type.is_uint() ? "u" : "", type.bits());
}

namespace {

std::string float_literal(double value, bool is_double) {
    if (std::isnan(value) || std::isinf(value)) {
        if (is_double) {
            std::uint64_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            return fmt::format("tw::double_of(0x{:x}ULL)", bits);
        }
        const float narrow = static_cast<float>(value);
        std::uint32_t bits;
        std::memcpy(&bits, &narrow, sizeof bits);
        return fmt::format("tw::float_of(0x{:x}U)", bits);
    }
    std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) {
        text += ".0";
    }
    text += is_double ? "" : "f";
    return text[0] == '-' ? "(" + text + ")" : text;
}

std::string integer_literal(Halide::Type type, std::int64_t value, std::uint64_t bits) {
    if (type.is_bool()) {
        return bits ? "true" : "false";
    }
    if (type.is_int() && type.bits() == 32) {
        return value == std::numeric_limits<int>::min() ? "(-2147483647 - 1)"
               : value < 0                              ? fmt::format("({})", value)
                                                        : fmt::format("{}", value);
    }
    if (type.is_uint()) {
        return fmt::format("{}({}{})", cuda_type(type), bits, type.bits() == 64 ? "ULL" : "U");
    }
    if (value == std::numeric_limits<std::int64_t>::min()) {
        return "tw::int64(-9223372036854775807LL - 1)";
    }
    return fmt::format("{}({}{})", cuda_type(type), value, type.bits() == 64 ? "LL" : "");
}

const char *infix(hi::IRNodeType kind) {
    switch (kind) {
        case hi::IRNodeType::Add:
            return "+";
        case hi::IRNodeType::Sub:
            return "-";
        case hi::IRNodeType::Mul:
            return "*";
        case hi::IRNodeType::EQ:
            return "==";
        case hi::IRNodeType::NE:
            return "!=";
        case hi::IRNodeType::LT:
            return "<";
        case hi::IRNodeType::LE:
            return "<=";
        case hi::IRNodeType::GT:
            return ">";
        case hi::IRNodeType::GE:
            return ">=";
        case hi::IRNodeType::And:
            return "&&";
        case hi::IRNodeType::Or:
            return "||";
        default:
            return nullptr;
    }
}

bool is_narrow(Halide::Type type) { return type.is_int_or_uint() && !type.is_bool() && type.bits() < 32; }

/// Division by a literal without a division: its reciprocal as the sum of two numbers of the same sign, so that quotients that a float
/// can hold come out exactly and infinities stay what they are.
std::optional<std::string> quotient_by_literal(const std::string &a, const Expr &by) {
    const auto *literal = by.as<hi::FloatImm>();
    if (!literal || by.type().bits() != 32 || !(std::fabs(literal->value) > 0x1p-60) || !(std::fabs(literal->value) < 0x1p60)) {
        return std::nullopt;
    }
    const double reciprocal = 1.0 / literal->value;
    float high = static_cast<float>(reciprocal);
    if (high * literal->value == 1.0) {
        return fmt::format("({} * {})", a, float_literal(high, false));
    }
    if (std::fabs(static_cast<double>(high)) > std::fabs(reciprocal)) {
        high = std::nextafterf(high, 0.0F);
    }
    return fmt::format("tw::quotient({}, {}, {})", without_parentheses(a), float_literal(high, false),
                       float_literal(reciprocal - high, false));
}

std::string float_division(const std::string &a, const std::string &b, const Expr &by) {
    const auto literal = quotient_by_literal(a, by);
    return literal ? *literal : "(" + a + " / " + b + ")";
}

/// Halide's integer division rounds to minus infinity; C's does too where nothing is negative.
std::string division(const Expr &e, const std::string &a, const std::string &b, bool remainder, const VariableRanges &ranges) {
    const Expr left = remainder ? e.as<hi::Mod>()->a : e.as<hi::Div>()->a;
    const Expr right = remainder ? e.as<hi::Mod>()->b : e.as<hi::Div>()->b;
    if (e.type().is_float()) {
        return remainder ? "tw::remainder(" + a + ", " + b + ")" : float_division(a, b, right);
    }
    const auto shift = hi::is_const_power_of_two_integer(right);
    if (e.type().bits() >= 32 && shift) {
        return remainder ? fmt::format("({} & {})", a, (1LL << *shift) - 1) : fmt::format("({} >> {})", a, *shift);
    }
    const auto numerator = range_of(left, ranges), denominator = range_of(right, ranges);
    if ((numerator && denominator && numerator->min >= 0 && denominator->min > 0) ||
        (e.type().is_uint() && e.type().bits() >= 32 && hi::is_const(right))) {
        return fmt::format("({} {} {})", a, remainder ? '%' : '/', b);
    }
    return fmt::format("tw::{}({}, {})", remainder ? "remainder" : "div_floor", a, b);
}

/// "(a + b)" for operators that C++ has with the same meaning, which read better than names; "" for others.
std::string infix(const std::string &name, const std::vector<std::string> &operands) {
    static const std::map<std::string, const char *> symbols = {{"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"eq", "=="}, {"ne", "!="},
                                                                {"lt", "<"},  {"le", "<="}, {"gt", ">"},  {"ge", ">="}};
    const auto found = symbols.find(name);
    return found == symbols.end() ? "" : fmt::format("({} {} {})", operands[0], found->second, operands[1]);
}

/// A primitive of dsl/algorithm/math.h.
std::string primitive_text(const hi::Call *op, const std::string &primitive, const std::vector<std::string> &operands,
                           const std::string &list) {
    if (primitive == "convert" || primitive == "explicit_cast") {
        return fmt::format("tw::convert<{}>({})", cuda_type(op->type), list);
    }
    if (primitive == "sorted_value") {  // its type does not follow from the key's
        return fmt::format("tw::sorted_value<{}>({})", cuda_type(op->type), list);
    }
    if (!op->args.empty() && op->args[0].type().is_float() && op->args[0].type().bits() >= 32) {
        if (primitive == "div_true") {
            return float_division(operands[0], operands[1], op->args[1]);
        }
        if (primitive == "neg") {
            return "(-" + operands[0] + ")";
        }
        if (const std::string text = infix(primitive, operands); !text.empty()) {
            return text;
        }
    }
    return "tw::" + primitive + "(" + list + ")";
}

/// Halide's strict arithmetic on floats; "" for other calls.
std::string strict_text(const hi::Call *op, const std::vector<std::string> &operands, const std::string &list) {
    constexpr std::string_view prefix = "strict_";
    if (!op->name.starts_with(prefix)) {
        return "";
    }
    const std::string name = op->name.substr(prefix.size());
    if (name == "div") {
        return float_division(operands[0], operands[1], op->args[1]);
    }
    if (name == "max" || name == "min") {
        return fmt::format("tw::{}({})", name == "max" ? "maximum" : "minimum", list);
    }
    return name == "float" ? operands[0] : infix(name, operands);
}

std::string call_text(const hi::Call *op, const std::vector<std::string> &operands) {
    std::string list;
    for (const std::string &operand : operands) {
        list += (list.empty() ? "" : ", ") + without_parentheses(operand);
    }
    if (const std::string primitive(math::primitive_name(op)); !primitive.empty()) {
        return primitive_text(op, primitive, operands, list);
    }
    if (const std::string strict = strict_text(op, operands, list); !strict.empty()) {
        return strict;
    }
    if (op->is_intrinsic(hi::Call::likely) || op->is_intrinsic(hi::Call::likely_if_innermost)) {
        return operands[0];
    }
    if (op->is_intrinsic(hi::Call::abs)) {
        return "tw::abs(" + list + ")";
    }
    if (op->is_intrinsic(hi::Call::bitwise_and)) {
        return "(" + operands[0] + " & " + operands[1] + ")";
    }
    if (op->is_intrinsic(hi::Call::bitwise_or)) {
        return "(" + operands[0] + " | " + operands[1] + ")";
    }
    if (op->is_intrinsic(hi::Call::bitwise_xor)) {
        return "(" + operands[0] + " ^ " + operands[1] + ")";
    }
    if (op->is_intrinsic(hi::Call::bitwise_not)) {
        return "tw::bitwise_not(" + list + ")";
    }
    if (op->is_intrinsic(hi::Call::shift_left) || op->is_intrinsic(hi::Call::shift_right)) {
        return fmt::format("tw::shift_{}({})", op->is_intrinsic(hi::Call::shift_left) ? "left" : "right", list);
    }
    if (op->is_intrinsic(hi::Call::if_then_else)) {
        return "(" + operands[0] + " ? " + operands[1] + " : " + operands[2] + ")";
    }
    internal_error("the CUDA emitter has no form for a call of '{}'", op->name);
}

}  // namespace

std::string cuda_literal(const Expr &e) {
    if (const auto *op = e.as<hi::FloatImm>()) {
        const std::string text = float_literal(op->value, op->type.bits() == 64);
        return op->type.bits() == 16 ? fmt::format("tw::convert<{}>({})", cuda_type(op->type), text) : text;
    }
    if (const auto *op = e.as<hi::IntImm>()) {
        return integer_literal(op->type, op->value, static_cast<std::uint64_t>(op->value));
    }
    const auto *op = e.as<hi::UIntImm>();
    return integer_literal(op->type, 0, op->value);
}

std::string without_parentheses(const std::string &text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') {
        return text;
    }
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0 && i + 1 < text.size()) {
            return text;
        }
    }
    return text.substr(1, text.size() - 2);
}

std::vector<Expr> operands_of(const Expr &e) {
    std::vector<Expr> result;
    auto pair = [&](const auto *op) {
        if (op) {
            result = {op->a, op->b};
        }
    };
    pair(e.as<hi::Add>()), pair(e.as<hi::Sub>()), pair(e.as<hi::Mul>()), pair(e.as<hi::Div>()), pair(e.as<hi::Mod>());
    pair(e.as<hi::Min>()), pair(e.as<hi::Max>()), pair(e.as<hi::EQ>()), pair(e.as<hi::NE>()), pair(e.as<hi::LT>());
    pair(e.as<hi::LE>()), pair(e.as<hi::GT>()), pair(e.as<hi::GE>()), pair(e.as<hi::And>()), pair(e.as<hi::Or>());
    if (const auto *op = e.as<hi::Not>()) {
        return {op->a};
    }
    if (const auto *op = e.as<hi::Cast>()) {
        return {op->value};
    }
    if (const auto *op = e.as<hi::Reinterpret>()) {
        return {op->value};
    }
    if (const auto *op = e.as<hi::Select>()) {
        return {op->condition, op->true_value, op->false_value};
    }
    if (const auto *op = e.as<hi::Call>()) {
        return op->args;
    }
    return result;
}

std::string cuda_operation(const Expr &e, const std::vector<std::string> &operands, const VariableRanges &ranges) {
    if (const char *op = infix(e.node_type())) {
        const std::string text = fmt::format("({} {} {})", operands[0], op, operands[1]);
        return is_narrow(e.type()) ? fmt::format("static_cast<{}>{}", cuda_type(e.type()), text) : text;
    }
    switch (e.node_type()) {
        case hi::IRNodeType::Div:
            return division(e, operands[0], operands[1], false, ranges);
        case hi::IRNodeType::Mod:
            return division(e, operands[0], operands[1], true, ranges);
        case hi::IRNodeType::Min:
            return fmt::format("tw::minimum({}, {})", without_parentheses(operands[0]), without_parentheses(operands[1]));
        case hi::IRNodeType::Max:
            return fmt::format("tw::maximum({}, {})", without_parentheses(operands[0]), without_parentheses(operands[1]));
        case hi::IRNodeType::Not:
            return "(!" + operands[0] + ")";
        case hi::IRNodeType::Select:
            return fmt::format("({} ? {} : {})", operands[0], operands[1], operands[2]);
        case hi::IRNodeType::Cast: {
            const Halide::Type from = e.as<hi::Cast>()->value.type(), to = e.type();
            if (from == to) {
                return operands[0];
            }
            if (from.is_int_or_uint() && to.is_int_or_uint() && !to.is_bool()) {
                return fmt::format("static_cast<{}>({})", cuda_type(to), without_parentheses(operands[0]));
            }
            return fmt::format("tw::convert<{}>({})", cuda_type(to), without_parentheses(operands[0]));
        }
        case hi::IRNodeType::Reinterpret:
            return fmt::format("tw::reinterpret_bits<{}>({})", cuda_type(e.type()), without_parentheses(operands[0]));
        case hi::IRNodeType::Call:
            return call_text(e.as<hi::Call>(), operands);
        default:
            break;
    }
    std::ostringstream text;
    text << e;
    internal_error("the CUDA emitter has no form for {}", text.str());
}

}  // namespace tilewright
