#include "tests/support/reference_code.h"

#include <stdexcept>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright::tests {

namespace hi = Halide::Internal;
using Halide::Expr;
using Halide::Type;

namespace {

std::int64_t divide(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0); }

}  // namespace

int Code::variable(const std::string &name) {
    int slot = add([](const std::vector<Scalar> &) { return Scalar(); });
    variables[name] = slot;
    inputs.push_back(slot);
    return slot;
}

int Code::compile(const Expr &e) {
    if (auto found = memo.find(e.get()); found != memo.end()) {
        return found->second;
    }
    kept.push_back(e);
    int slot = compile_node(e);
    memo[e.get()] = slot;
    return slot;
}

void Code::run(const std::vector<std::int64_t> &values) {
    for (std::size_t i = 0; i < values.size(); i++) {
        slots[static_cast<std::size_t>(inputs[i])] = Scalar{0, values[i]};
    }
    for (std::size_t i = 0; i < steps.size(); i++) {
        if (i >= inputs.size()) {
            slots[i] = steps[i](slots);
        }
    }
}

int Code::add(Step step) {
    steps.push_back(std::move(step));
    slots.emplace_back();
    return static_cast<int>(steps.size()) - 1;
}

int Code::constant(Scalar value) {
    return add([value](const std::vector<Scalar> &) { return value; });
}

template<typename Function> int Code::operation(const Expr &a, const Expr &b, Type type, Function function) {
    auto left = static_cast<std::size_t>(compile(a)), right = static_cast<std::size_t>(compile(b));
    return add([=](const std::vector<Scalar> &s) { return normalise(function(s[left], s[right]), type); });
}

template<typename Node, typename OnFloats, typename OnIntegers>
int Code::arithmetic(const Expr &e, OnFloats on_floats, OnIntegers on_integers) {
    const auto *op = e.as<Node>();
    if (op->a.type().is_float()) {
        return operation(op->a, op->b, e.type(), [=](Scalar a, Scalar b) { return Scalar{on_floats(a.f, b.f), 0}; });
    }
    return operation(op->a, op->b, e.type(), [=](Scalar a, Scalar b) {
        return Scalar{0, static_cast<std::int64_t>(on_integers(a.i, b.i))};
    });
}

int Code::compile_node(const Expr &e) {
    auto no_floats = [](double, double) -> double { throw std::logic_error("Halide operator on floats that is not exact"); };
    switch (e->node_type) {
        case hi::IRNodeType::IntImm:
            return constant({0, e.as<hi::IntImm>()->value});
        case hi::IRNodeType::UIntImm:
            return constant({0, static_cast<std::int64_t>(e.as<hi::UIntImm>()->value)});
        case hi::IRNodeType::FloatImm:
            return constant({e.as<hi::FloatImm>()->value, 0});
        case hi::IRNodeType::Variable:
            return compile_variable(e.as<hi::Variable>()->name);
        case hi::IRNodeType::Add:
            return arithmetic<hi::Add>(
                e, [](double a, double b) { return a + b; }, [](std::int64_t a, std::int64_t b) { return a + b; });
        case hi::IRNodeType::Sub:
            return arithmetic<hi::Sub>(
                e, [](double a, double b) { return a - b; }, [](std::int64_t a, std::int64_t b) { return a - b; });
        case hi::IRNodeType::Mul:
            return arithmetic<hi::Mul>(
                e, [](double a, double b) { return a * b; }, [](std::int64_t a, std::int64_t b) { return a * b; });
        case hi::IRNodeType::Div:
            return arithmetic<hi::Div>(
                e, [](double a, double b) { return a / b; }, divide);
        case hi::IRNodeType::Mod:
            return arithmetic<hi::Mod>(e, no_floats, [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a - divide(a, b) * b; });
        case hi::IRNodeType::Min:
            return arithmetic<hi::Min>(e, no_floats, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
        case hi::IRNodeType::Max:
            return arithmetic<hi::Max>(e, no_floats, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
        case hi::IRNodeType::EQ:
            return arithmetic<hi::EQ>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a == b; });
        case hi::IRNodeType::NE:
            return arithmetic<hi::NE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a != b; });
        case hi::IRNodeType::LT:
            return arithmetic<hi::LT>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a < b; });
        case hi::IRNodeType::LE:
            return arithmetic<hi::LE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a <= b; });
        case hi::IRNodeType::GT:
            return arithmetic<hi::GT>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a > b; });
        case hi::IRNodeType::GE:
            return arithmetic<hi::GE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a >= b; });
        case hi::IRNodeType::And:
            return arithmetic<hi::And>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a && b; });
        case hi::IRNodeType::Or:
            return arithmetic<hi::Or>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a || b; });
        case hi::IRNodeType::Not: {
            auto a = static_cast<std::size_t>(compile(e.as<hi::Not>()->a));
            return add([=](const std::vector<Scalar> &s) { return Scalar{0, !s[a].i}; });
        }
        case hi::IRNodeType::Select: {
            const auto *op = e.as<hi::Select>();
            auto c = static_cast<std::size_t>(compile(op->condition)), a = static_cast<std::size_t>(compile(op->true_value)),
                 b = static_cast<std::size_t>(compile(op->false_value));
            return add([=](const std::vector<Scalar> &s) { return s[c].i ? s[a] : s[b]; });
        }
        case hi::IRNodeType::Cast:
            return conversion(e.as<hi::Cast>()->value, e.type());
        case hi::IRNodeType::Call:
            return compile_call(e);
        default:
            throw std::logic_error("the reference evaluator does not know node " + std::to_string(static_cast<int>(e->node_type)));
    }
}

int Code::conversion(const Expr &value, Type to) {
    auto a = static_cast<std::size_t>(compile(value));
    Type from = value.type();
    return add([=](const std::vector<Scalar> &s) { return convert(s[a], from, to); });
}

int Code::compile_variable(const std::string &name) {
    if (auto found = variables.find(name); found != variables.end()) {
        return found->second;
    }
    return constant({0, environment.symbols->at(name)});
}

int Code::compile_call(const Expr &e) {
    const auto *op = e.as<hi::Call>();
    std::vector<std::size_t> args;
    for (const Expr &arg : op->args) {
        args.push_back(static_cast<std::size_t>(compile(arg)));
    }
    if (is_read(op)) {
        return compile_read(*op, args);
    }
    std::string_view name = math::primitive_name(op);
    if (name == "convert" || name == "explicit_cast") {
        return conversion(op->args[0], e.type());
    }
    if (name == "checked_index") {
        return compile_checked_index(args);
    }
    Type operand = op->args[0].type(), type = e.type();
    if (op->is_intrinsic({hi::Call::bitwise_and, hi::Call::bitwise_or, hi::Call::bitwise_xor, hi::Call::bitwise_not})) {
        char kind = op->name[8];  // "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"
        std::size_t a = args[0], b = args.back();
        return add([=](const std::vector<Scalar> &s) {
            std::int64_t x = s[a].i, y = s[b].i;
            return normalise({0, kind == 'a' ? x & y : kind == 'o' ? x | y : kind == 'x' ? x ^ y : ~x}, type);
        });
    }
    ScalarFunction function = find_primitive(name);
    if (!function) {
        throw std::logic_error("the reference evaluator does not know " + op->name);
    }
    return add([=](const std::vector<Scalar> &s) {
        Scalar values[4];
        for (std::size_t i = 0; i < args.size(); i++) {
            values[i] = s[args[i]];
        }
        return normalise(function(values, operand), type);
    });
}

int Code::compile_checked_index(const std::vector<std::size_t> &args) {
    ReferenceResult *result = environment.result;
    return add([=](const std::vector<Scalar> &s) {
        std::int64_t index = s[args[0]].i, size = s[args[1]].i, place = index < 0 && s[args[2]].i ? index + size : index;
        if (place >= 0 && place < size) {
            return Scalar{0, place};
        }
        if (!result->index_error) {
            result->index_error = {static_cast<int>(s[args[3]].i), index, size};
        }
        return Scalar();
    });
}

int Code::compile_read(const hi::Call &op, const std::vector<std::size_t> &args) {
    auto found = environment.tensors.find(op.name);
    if (found == environment.tensors.end()) {
        throw std::logic_error("nothing is called " + op.name);
    }
    Values *values = found->second.at(static_cast<std::size_t>(op.value_index));
    std::string name = op.name;
    return add([=](const std::vector<Scalar> &s) {
        std::int64_t place = 0;
        for (std::size_t i = 0; i < args.size(); i++) {
            std::int64_t index = s[args[i]].i;
            if (index < 0 || index >= values->sizes[i]) {
                throw std::out_of_range(fmt::format("{} is read at {} in dimension {} of size {}", name, index, i, values->sizes[i]));
            }
            place = place * values->sizes[i] + index;
        }
        return values->elements[static_cast<std::size_t>(place)];
    });
}

}  // namespace tilewright::tests
