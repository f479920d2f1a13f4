#include "lowering/streaming/score_function.h"

#include <cmath>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "lowering/passes/operation.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// One mask for each condition that must hold.
void add_mask(std::vector<Expr> &masks, const Expr &condition, bool negated) {
    const Operation op = operation_of(condition);
    if (op.name == "not") {
        add_mask(masks, op.operands[0], !negated);
    } else if (op.name == (negated ? "or" : "and")) {
        add_mask(masks, op.operands[0], negated);
        add_mask(masks, op.operands[1], negated);
    } else if (op.name == "select" && condition.type().is_bool() && hi::is_const(op.operands[1]) && hi::is_const(op.operands[2])) {
        // A triangle of ones and zeros.
        const bool if_true = hi::is_const_one(op.operands[1]), if_false = hi::is_const_one(op.operands[2]);
        if (if_true != if_false) {
            add_mask(masks, op.operands[0], negated != if_false);
        } else if (if_true == negated) {
            masks.push_back(hi::const_false());
        }
    } else {
        masks.push_back(negated ? hi::Not::make(condition) : condition);
    }
}

Expr without_masks(const Expr &e, std::vector<Expr> &masks) {
    const Operation op = operation_of(e);
    if (op.name == "select" && is_negative_infinity(op.operands[2])) {
        add_mask(masks, op.operands[0], false);
        return without_masks(op.operands[1], masks);
    }
    if (op.name == "select" && is_negative_infinity(op.operands[1])) {
        add_mask(masks, op.operands[0], true);
        return without_masks(op.operands[2], masks);
    }
    // -inf stays -inf below conversions and positive factors.
    if (is_float_conversion(e, op)) {
        const Expr inner = without_masks(op.operands[0], masks);
        if (const auto *cast = e.as<hi::Cast>()) {
            return hi::Cast::make(cast->type, inner);
        }
        const auto *call = e.as<hi::Call>();
        return hi::Call::make(call->type, call->name, {inner}, call->call_type);
    }
    return e;
}

/// A score that was narrow for a moment, without a word of the program: nobody outside sees it, and all readers inside see the same.
Expr without_rounding(const Expr &e) {
    const auto *wide = e.as<hi::Call>(), *narrow = wide && !wide->args.empty() ? wide->args[0].as<hi::Call>() : nullptr;
    const bool returns = narrow && math::primitive_name(wide) == "convert" && math::primitive_name(narrow) == "convert" &&
                         narrow->args[0].type() == e.type();
    return returns && e.type().bits() > narrow->type.bits() && narrow->type.bits() > 8 ? narrow->args[0] : e;
}

/// Only what stands directly on the product is scaled later: a value that is computed on its way has its scale computed with it.
bool as_read(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    const Operation op = operation_of(e);
    return (call && is_read(call)) ||
           (is_float_conversion(e, op) && e.type().bits() == 32 && op.operands[0].type() == e.type() && as_read(op.operands[0]));
}

}  // namespace

ScoreFunction take_score_apart(const Expr &score) {
    ScoreFunction result;
    result.value = without_rounding(without_masks(score, result.masks));
    for (Operation op = operation_of(result.value); op.name == "mul" || op.name == "div"; op = operation_of(result.value)) {
        const int constant = op.name == "mul" && std::isfinite(float_constant(op.operands[0])) ? 0 : 1;
        const double factor = float_constant(op.operands[constant]);
        if (!std::isfinite(factor) || factor <= 0 || !as_read(op.operands[1 - constant])) {
            break;
        }
        result.scale *= op.name == "mul" ? factor : 1 / factor;
        result.value = op.operands[1 - constant];
    }
    return result;
}

}  // namespace tilewright
