#include "lowering/products/strided_operand.h"

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// The quotient of an axis by a number; 1: the axis.
using Quotient = std::pair<std::string, std::int64_t>;

/// A sum of axes and their quotients times extents, as fused loops leave them: x % c is x - x / c * c. False where the expression is none.
class Sum {
public:
    explicit Sum(const Nest &nest) : nest_(nest) {}

    bool add(const Expr &e, const Extent &factor) {
        if (const auto *op = e.as<hi::Add>()) {
            return add(op->a, factor) && add(op->b, factor);
        }
        if (const auto *op = e.as<hi::Sub>()) {
            return add(op->a, factor) && add(op->b, factor * Extent(-1));
        }
        if (const auto *op = e.as<hi::Mul>()) {
            if (const auto a = from_halide(op->a); a && is_free(op->a)) {
                return add(op->b, factor * *a);
            }
            const auto b = from_halide(op->b);
            return b && is_free(op->b) && add(op->a, factor * *b);
        }
        if (const auto *op = e.as<hi::Mod>()) {
            const auto whole = quotient(op->a);
            const auto divisor = hi::as_const_int(op->b);
            if (!whole || !divisor || *divisor <= 0) {
                return false;
            }
            add_term(*whole, factor);
            add_term({whole->first, whole->second * *divisor}, factor * Extent(-*divisor));
            return true;
        }
        if (const auto one = quotient(e)) {
            add_term(*one, factor);
            return true;
        }
        const auto constant = from_halide(e);
        if (!constant || !is_free(e)) {
            return false;
        }
        offset = offset + *constant * factor;
        return true;
    }

    /// False where a quotient is left, but one of the packed axis.
    bool join(StridedOperand &operand, const std::string &packed) const {
        for (const auto &[quotient, factor] : terms) {
            if (factor == Extent(0)) {
                continue;
            }
            const bool is_packed = quotient.second != 1 && quotient.first == packed;
            if ((quotient.second != 1 && !is_packed) || !operand.strides.emplace(quotient.first, factor).second) {
                return false;
            }
            operand.packing = is_packed ? static_cast<int>(quotient.second) : operand.packing;
        }
        return true;
    }

    std::map<Quotient, Extent> terms;
    Extent offset = 0;

private:
    void add_term(const Quotient &quotient, const Extent &factor) {
        auto [found, is_new] = terms.emplace(quotient, factor);
        if (!is_new) {
            found->second = found->second + factor;
        }
    }
    /// An axis, or an axis by a number, by a number.
    std::optional<Quotient> quotient(const Expr &e) const {
        if (const std::string axis = as_variable(e); !axis.empty() && nest_.find_axis(axis)) {
            return Quotient(axis, 1);
        }
        const auto *op = e.as<hi::Div>();
        const auto whole = op ? quotient(op->a) : std::nullopt;
        const auto divisor = op ? hi::as_const_int(op->b) : std::nullopt;
        return whole && divisor && *divisor > 0 ? std::optional(Quotient(whole->first, whole->second * *divisor)) : std::nullopt;
    }
    bool is_free(const Expr &e) const {
        for (const std::string &name : variables_of(e)) {
            if (nest_.find_axis(name)) {
                return false;
            }
        }
        return true;
    }
    const Nest &nest_;
};

}  // namespace

Extent StridedOperand::stride(const std::string &axis) const {
    auto found = strides.find(axis);
    return found == strides.end() ? Extent(0) : found->second;
}

Expr below_widening(Expr e) {
    while (true) {
        if (const auto *cast = e.as<hi::Cast>()) {
            e = cast->value;
            continue;
        }
        const auto *call = e.as<hi::Call>();
        const auto name = call && !is_read(call) ? math::primitive_name(call) : std::string_view();
        if (name != "convert" && name != "explicit_cast") {
            return e;
        }
        const Halide::Type from = call->args[0].type();
        const bool widens =
            from.is_float() && call->type.is_float() && call->type.bits() >= from.bits() && (call->type.bits() > 16 || call->type == from);
        if (!widens) {
            return e;
        }
        e = call->args[0];
    }
}

std::optional<StridedOperand> match_strided_place(const tile::Buffer &buffer, const std::vector<Expr> &indices, const Nest &nest,
                                                  const std::string &packed) {
    Sum sum(nest);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!sum.add(indices[i], buffer.strides[i])) {
            return std::nullopt;
        }
    }
    StridedOperand operand;
    operand.buffer = buffer;
    operand.type = buffer.types[0];
    operand.offset = sum.offset;
    if (!sum.join(operand, packed)) {
        return std::nullopt;
    }
    return operand;
}

std::optional<StridedOperand> match_strided_operand(const Expr &factor, const Nest &nest, const tile::Launch &launch) {
    const Expr value = below_widening(factor);
    const auto *read = value.as<hi::Call>();
    const tile::Buffer *buffer = read && is_read(read) ? launch.find_buffer(read->name) : nullptr;
    if (!buffer || buffer->memory != tile::Memory::global || buffer->binding == tile::Buffer::Binding::output) {
        return std::nullopt;
    }
    return match_strided_place(*buffer, read->args, nest);
}

}  // namespace tilewright
