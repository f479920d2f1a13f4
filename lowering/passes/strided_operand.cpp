#include "lowering/passes/strided_operand.h"

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// An axis, or its quotient or remainder by a constant, as fused loops leave them.
struct Atom {
    enum class Part { whole, quotient, remainder } part = Part::whole;
    std::string axis;
    std::int64_t divisor = 1;
    friend auto operator<=>(const Atom &, const Atom &) = default;
};

/// A sum of atoms times extents. False where the expression is none.
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
        if (const auto *op = e.as<hi::Div>()) {
            return add_part(Atom::Part::quotient, op->a, op->b, factor);
        }
        if (const auto *op = e.as<hi::Mod>()) {
            return add_part(Atom::Part::remainder, op->a, op->b, factor);
        }
        if (const std::string axis = as_variable(e); !axis.empty() && nest_.find_axis(axis)) {
            terms[{Atom::Part::whole, axis, 1}] = at({Atom::Part::whole, axis, 1}) + factor;
            return true;
        }
        const auto constant = from_halide(e);
        if (!constant || !is_free(e)) {
            return false;
        }
        offset = offset + *constant * factor;
        return true;
    }

    /// (x / c) * s * c + (x % c) * s is x * s. False where a quotient or remainder stands alone.
    bool join(std::map<std::string, Extent> &strides) const {
        for (const auto &[atom, factor] : terms) {
            if (factor == Extent(0)) {
                continue;
            }
            if (atom.part == Atom::Part::whole) {
                strides[atom.axis] = strides.count(atom.axis) ? strides[atom.axis] + factor : factor;
            } else if (atom.part == Atom::Part::remainder) {
                const Extent quotient = at({Atom::Part::quotient, atom.axis, atom.divisor});
                if (!(quotient == factor * Extent(atom.divisor))) {
                    return false;
                }
                strides[atom.axis] = strides.count(atom.axis) ? strides[atom.axis] + factor : factor;
            } else if (at({Atom::Part::remainder, atom.axis, atom.divisor}) == Extent(0)) {
                return false;
            }
        }
        return true;
    }

    std::map<Atom, Extent> terms;
    Extent offset = 0;

private:
    Extent at(const Atom &atom) const {
        auto found = terms.find(atom);
        return found == terms.end() ? Extent(0) : found->second;
    }
    bool is_free(const Expr &e) const {
        for (const std::string &name : variables_of(e)) {
            if (nest_.find_axis(name)) {
                return false;
            }
        }
        return true;
    }
    bool add_part(Atom::Part part, const Expr &of, const Expr &by, const Extent &factor) {
        const std::string axis = as_variable(of);
        const auto divisor = from_halide(by);
        if (axis.empty() || !nest_.find_axis(axis) || !divisor || !divisor->is_constant()) {
            return false;
        }
        const Atom atom{part, axis, divisor->value()};
        terms[atom] = at(atom) + factor;
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
        const bool widens = from.is_float() && call->type.is_float() && call->type.bits() >= from.bits() && (call->type.bits() > 16 || call->type == from);
        if (!widens) {
            return e;
        }
        e = call->args[0];
    }
}

std::optional<StridedOperand> match_strided_place(const tile::Buffer &buffer, const std::vector<Expr> &indices, const Nest &nest) {
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
    if (!sum.join(operand.strides)) {
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
