#include "lowering/fusion/index_evaluator.h"

#include <algorithm>
#include <string_view>

#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::int64_t floored_quotient(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::div_imp(a, b); }
std::int64_t floored_remainder(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : hi::mod_imp(a, b); }

}  // namespace

const IndexEvaluator::Values *IndexEvaluator::of(const Expr &e) {
    if (const auto *variable = e.as<hi::Variable>()) {
        const auto found = columns_.find(variable->name);
        return found == columns_.end() ? nullptr : &found->second;
    }
    const auto [place, is_new] = memo_.try_emplace(e.get());
    if (is_new) {
        auto values = node(e);
        memo_[e.get()] = std::move(values);
    }
    const auto &known = memo_[e.get()];
    return known ? &*known : nullptr;
}

template<typename Node, typename Function> IndexEvaluator::Result IndexEvaluator::binary(const Expr &e, Function function) {
    const auto *op = e.as<Node>();
    const Values *a = of(op->a);
    const Values *b = a ? of(op->b) : nullptr;
    if (!a || !b) {
        return std::nullopt;
    }
    Values result(count_);
    for (std::size_t i = 0; i < count_; ++i) {
        result[i] = function((*a)[i], (*b)[i]);
    }
    return result;
}

IndexEvaluator::Result IndexEvaluator::node(const Expr &e) {
    using hi::IRNodeType;
    switch (e->node_type) {
        case IRNodeType::IntImm:
            return Values(count_, e.as<hi::IntImm>()->value);
        case IRNodeType::UIntImm:
            return Values(count_, static_cast<std::int64_t>(e.as<hi::UIntImm>()->value));
        case IRNodeType::Cast: {
            const bool keeps = e.type().is_int_or_uint() && e.type().bits() >= 32;
            const Values *value = keeps ? of(e.as<hi::Cast>()->value) : nullptr;
            return value ? Result(*value) : std::nullopt;
        }
        case IRNodeType::Add:
            return binary<hi::Add>(e, [](auto a, auto b) { return a + b; });
        case IRNodeType::Sub:
            return binary<hi::Sub>(e, [](auto a, auto b) { return a - b; });
        case IRNodeType::Mul:
            return binary<hi::Mul>(e, [](auto a, auto b) { return a * b; });
        case IRNodeType::Div:
            return binary<hi::Div>(e, floored_quotient);
        case IRNodeType::Mod:
            return binary<hi::Mod>(e, floored_remainder);
        case IRNodeType::Min:
            return binary<hi::Min>(e, [](auto a, auto b) { return std::min(a, b); });
        case IRNodeType::Max:
            return binary<hi::Max>(e, [](auto a, auto b) { return std::max(a, b); });
        case IRNodeType::EQ:
            return binary<hi::EQ>(e, [](auto a, auto b) { return std::int64_t(a == b); });
        case IRNodeType::NE:
            return binary<hi::NE>(e, [](auto a, auto b) { return std::int64_t(a != b); });
        case IRNodeType::LT:
            return binary<hi::LT>(e, [](auto a, auto b) { return std::int64_t(a < b); });
        case IRNodeType::LE:
            return binary<hi::LE>(e, [](auto a, auto b) { return std::int64_t(a <= b); });
        case IRNodeType::GT:
            return binary<hi::GT>(e, [](auto a, auto b) { return std::int64_t(a > b); });
        case IRNodeType::GE:
            return binary<hi::GE>(e, [](auto a, auto b) { return std::int64_t(a >= b); });
        case IRNodeType::And:
            return binary<hi::And>(e, [](auto a, auto b) { return std::int64_t(a && b); });
        case IRNodeType::Or:
            return binary<hi::Or>(e, [](auto a, auto b) { return std::int64_t(a || b); });
        case IRNodeType::Not:
            return negation(*e.as<hi::Not>());
        case IRNodeType::Select:
            return select(*e.as<hi::Select>());
        case IRNodeType::Call:
            return primitive(*e.as<hi::Call>());
        default:
            return std::nullopt;
    }
}

IndexEvaluator::Result IndexEvaluator::negation(const hi::Not &op) {
    const Values *a = of(op.a);
    if (!a) {
        return std::nullopt;
    }
    Values result(count_);
    std::transform(a->begin(), a->end(), result.begin(), [](std::int64_t value) { return std::int64_t(!value); });
    return result;
}

IndexEvaluator::Result IndexEvaluator::select(const hi::Select &op) {
    const Values *condition = of(op.condition);
    const Values *yes = condition ? of(op.true_value) : nullptr;
    const Values *no = yes ? of(op.false_value) : nullptr;
    if (!no) {
        return std::nullopt;
    }
    Values result(count_);
    for (std::size_t i = 0; i < count_; ++i) {
        result[i] = (*condition)[i] ? (*yes)[i] : (*no)[i];
    }
    return result;
}

/// The primitives of integers of 32 or 64 bits; they wrap.
IndexEvaluator::Result IndexEvaluator::primitive(const hi::Call &op) {
    const std::string_view name = math::primitive_name(&op);
    if (!op.type.is_int() || op.type.bits() < 32) {
        return std::nullopt;
    }
    const auto wrapped = [&](std::uint64_t value) {
        return op.type.bits() == 32 ? std::int64_t(static_cast<std::int32_t>(value)) : static_cast<std::int64_t>(value);
    };
    Values result(count_);
    if (name == "convert" || name == "explicit_cast") {
        const Halide::Type from = op.args[0].type();
        const Values *value = from.is_int_or_uint() ? of(op.args[0]) : nullptr;
        if (!value) {
            return std::nullopt;
        }
        std::transform(value->begin(), value->end(), result.begin(), wrapped);
        return result;
    }
    if (name != "add" && name != "sub" && name != "mul") {
        return std::nullopt;
    }
    const Values *a = of(op.args[0]);
    const Values *b = a ? of(op.args[1]) : nullptr;
    if (!b) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < count_; ++i) {
        const std::uint64_t x = (*a)[i], y = (*b)[i];
        result[i] = wrapped(name == "add" ? x + y : name == "sub" ? x - y : x * y);
    }
    return result;
}

}  // namespace tilewright
