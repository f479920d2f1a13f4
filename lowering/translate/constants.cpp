// Values without operands: constants and index ramps. They are repeated wherever they are read.
#include "lowering/translate/constants.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr constant(Halide::Type type, double value) {
    if (type.is_float()) {
        return hi::FloatImm::make(type, value);
    }
    return constant(type, static_cast<std::int64_t>(value));
}

Expr constant(Halide::Type type, std::int64_t value) {
    if (type.is_float()) {
        return hi::FloatImm::make(type, static_cast<double>(value));
    }
    if (type.is_bool()) {
        return hi::make_bool(value != 0);
    }
    return type.is_uint() ? Expr(hi::UIntImm::make(type, static_cast<std::uint64_t>(value))) : Expr(hi::IntImm::make(type, value));
}

Expr constant(Halide::Type type, const Extent &value) {
    if (auto number = value.constant()) {
        return constant(type, *number);
    }
    return math::convert(type, to_halide(value));
}

namespace {

void full(TranslationContext &context, const Node &node) {
    Halide::Type type = to_halide(TranslationContext::result_meta(node).dtype);
    const Argument &value = TranslationContext::argument(node, "value");
    if (const bool *flag = value.get_if<bool>()) {
        context.define_constant(node, constant(type, std::int64_t{*flag}));
    } else if (const Extent *extent = value.get_if<Extent>()) {
        context.define_constant(node, constant(type, *extent));
    } else {
        context.define_constant(node, constant(type, TranslationContext::number(node, "value")));
    }
}

void iota(TranslationContext &context, const Node &node) {
    Halide::Type type = to_halide(TranslationContext::result_meta(node).dtype), wide = Halide::Int(64);
    Extent start = TranslationContext::extent(node, "start"), step = TranslationContext::extent(node, "step");
    Expr place = math::convert(wide, TranslationContext::indices(node)[0]);
    if (step != Extent(1)) {
        place = math::mul(place, constant(wide, step));
    }
    if (start != Extent(0)) {
        place = math::add(place, constant(wide, start));
    }
    context.define_constant(node, math::convert(type, place));
}

}  // namespace

void add_constants(Table &table) {
    table["prims.full"] = full;
    table["prims.iota"] = iota;
}

}  // namespace tilewright::translation
