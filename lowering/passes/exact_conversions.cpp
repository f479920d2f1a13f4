#include "lowering/passes/exact_conversions.h"

#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// What a conversion converts; undefined for another expression.
Expr converted(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    const bool converts = call && call->call_type != hi::Call::Halide && (math::primitive_name(call) == "convert" || math::primitive_name(call) == "explicit_cast");
    return converts ? call->args[0] : Expr();
}

class SkipExact : public hi::IRGraphMutator {
public:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        const Expr e = hi::IRGraphMutator::visit(op), between = converted(e), from = between.defined() ? converted(between) : Expr();
        const bool is_exact = from.defined() && from.type().is_int_or_uint() && from.type().bits() == 8 && between.type().is_float() && between.type().bits() == 16;
        return is_exact && e.type().is_float() && e.type().bits() > 16 ? math::convert(e.type(), from) : e;
    }
};

}  // namespace

Expr skip_exact_conversions(const Expr &e) { return SkipExact().mutate(e); }

}  // namespace tilewright
