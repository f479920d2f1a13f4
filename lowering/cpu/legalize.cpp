#include "lowering/cpu/legalize.h"

#include <fmt/format.h>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cpu/math/conversions.h"
#include "lowering/cpu/math/primitives.h"
#include "lowering/cpu/math/strict.h"
#include "lowering/cpu/packed_input.h"

namespace tilewright {

using Halide::cast;
using Halide::Expr;
using Halide::Int;
using namespace Halide::Internal;

namespace {

template<typename Op, typename F> Expr rewrite(IRMutator &mutator, const Op *op, F &&strict) {
    Expr a = mutator.mutate(op->a);
    Expr b = mutator.mutate(op->b);
    if (a.type().is_float()) {
        return strict(Strict(a), Strict(b));
    }
    return a.same_as(op->a) && b.same_as(op->b) ? Expr(op) : Op::make(std::move(a), std::move(b));
}

bool divides(std::string_view primitive) {
    return primitive == "div_floor" || primitive == "div_trunc" || primitive == "fmod" || primitive == "remainder";
}

/// Extents and indices are computed from variables and constants alone.
bool reads_data(const Expr &e) {
    class Finder : public IRVisitor {
    public:
        bool found = false;

    private:
        using IRVisitor::visit;
        void visit(const Call *op) override {
            found = found || op->call_type == Call::Halide || op->call_type == Call::Image;
            IRVisitor::visit(op);
        }
    } finder;
    e.accept(&finder);
    return finder.found;
}

}  // namespace

Expr Legalizer::visit(const Add *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return (a + b).expr(); });
}
Expr Legalizer::visit(const Sub *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return (a - b).expr(); });
}
Expr Legalizer::visit(const Mul *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return (a * b).expr(); });
}
Expr Legalizer::visit(const Div *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return (a / b).expr(); });
}
Expr Legalizer::visit(const Min *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return minimum_of(a.expr(), b.expr()); });
}
Expr Legalizer::visit(const Max *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return maximum_of(a.expr(), b.expr()); });
}
Expr Legalizer::visit(const EQ *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return a == b; });
}
Expr Legalizer::visit(const NE *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return !(a == b); });
}
Expr Legalizer::visit(const LT *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return a < b; });
}
Expr Legalizer::visit(const LE *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return a <= b; });
}
Expr Legalizer::visit(const GT *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return a > b; });
}
Expr Legalizer::visit(const GE *op) {
    return rewrite(*this, op, [](const Strict &a, const Strict &b) { return a >= b; });
}

Expr Legalizer::visit(const Cast *op) {
    Expr value = mutate(op->value);
    if (op->type.is_float() || value.type().is_float()) {
        return convert_value(op->type, value);
    }
    return value.same_as(op->value) ? Expr(op) : Cast::make(op->type, std::move(value));
}

Expr Legalizer::visit(const Variable *op) {
    if (op->reduction_domain.defined()) {
        const auto value = context_.reductions.find(op->name);
        return value != context_.reductions.end() ? value->second : Expr(op);
    }
    const auto clamp = context_.clamps.find(op->name);
    return clamp != context_.clamps.end() ? clamp->second : Expr(op);
}

Expr Legalizer::visit(const Call *op) {
    if (!context_.padded.empty() && op->name == context_.padded) {
        return read_padded(op);
    }
    std::vector<Expr> args;
    args.reserve(op->args.size());
    for (const Expr &arg : op->args) {
        args.push_back(mutate(arg));
    }
    if (const std::string_view primitive = math::primitive_name(op); !primitive.empty()) {
        return expand(primitive, op, args);
    }
    if (op->call_type == Call::Halide) {
        const auto copy = context_.stage_copies.find(op->name);
        if (copy != context_.stage_copies.end()) {
            return read_copy(op, copy->second, args);
        }
        const auto found = context_.functions.find(op->name);
        if (found != context_.functions.end()) {
            return Call::make(found->second, args, op->value_index);
        }
    }
    if (op->call_type == Call::Image && op->param.defined()) {
        const auto packed = context_.input_packs.find(op->param.name());
        if (packed != context_.input_packs.end()) {
            return packed->second->read(beyond_the_end(op, args));
        }
        const auto copy = context_.input_copies.find(op->param.name());
        if (copy != context_.input_copies.end()) {
            return read_copy(op, copy->second, args);
        }
        const auto found = context_.inputs.find(op->param.name());
        if (found != context_.inputs.end()) {
            return Call::make(found->second, args);
        }
    }
    return Call::make(op->type, op->name, args, op->call_type, op->func, op->value_index, op->image, op->param);
}

/// A copy has room for its reader's whole tile, so that the reader need not stop at the axis's end.
std::vector<Expr> Legalizer::beyond_the_end(const Call *op, std::vector<Expr> args) const {
    for (std::size_t i = 0; i < args.size(); i++) {
        const auto *variable = op->args[i].as<Variable>();
        if (variable && context_.clamps.count(variable->name)) {
            args[i] = op->args[i];
        }
    }
    return args;
}

Expr Legalizer::read_copy(const Call *op, const Function &copy, std::vector<Expr> args) {
    return Call::make(copy, beyond_the_end(op, std::move(args)), op->value_index);
}

/// The padded input has all that whole tiles read.
Expr Legalizer::read_padded(const Call *op) const {
    LegalizeContext unclamped;
    unclamped.reductions = context_.reductions;
    Legalizer plain(unclamped);
    std::vector<Expr> args;
    for (const Expr &arg : op->args) {
        args.push_back(plain.mutate(arg));
    }
    return Call::make(Function(op->func), args, op->value_index);
}

Expr Legalizer::expand(std::string_view primitive, const Call *op, const std::vector<Expr> &args) {
    if (primitive == "checked_index") {
        return checked_index(args);
    }
    if (divides(primitive) && op->type.is_int_or_uint() && reads_data(args[1])) {
        return expand_primitive(primitive, op->type, {args[0], checked_divisor(args[1])});
    }
    if (primitive == "convert" || primitive == "explicit_cast") {
        return convert_value(op->type, args[0]);
    }
    return expand_primitive(primitive, op->type, args);
}

Expr Legalizer::status() {
    uses_status_ = true;
    // One parameter for all: Halide wants every mention of a name to be of one object.
    static const Halide::Parameter parameter(Halide::Handle(), false, 0, status_argument);
    return Variable::make(Halide::Handle(), status_argument, parameter);
}

Expr Legalizer::checked_index(const std::vector<Expr> &args) {
    const Expr size = cast(Int(64), args[1]);
    const Expr place =
        Call::make(Int(32), "tilewright_checked_index",
                   {status(), cast(Int(64), args[0]), size, cast(Int(32), args[2]), cast(Int(32), args[3])}, Call::PureExtern);
    // The call yields a place inside the axis; the clamp tells Halide's bounds inference so.
    return Halide::max(Halide::min(place, cast(Int(32), args[1]) - 1), 0);
}

/// As on PyTorch's CPU, a zero is an error.
Expr Legalizer::checked_divisor(const Expr &divisor) {
    checks_divisors_ = true;
    return cast(divisor.type(), Call::make(Int(64), "tilewright_checked_divisor", {status(), cast(Int(64), divisor)}, Call::PureExtern));
}

Expr legalize(const Expr &expr, const LegalizeContext &context) { return Legalizer(context).mutate(expr); }

std::vector<Expr> legalize_all(Legalizer &legalizer, const std::vector<Expr> &expressions) {
    std::vector<Expr> legal;
    for (const Expr &expression : expressions) {
        legal.push_back(legalizer.mutate(expression));
    }
    return legal;
}

}  // namespace tilewright
