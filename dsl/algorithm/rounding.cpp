#include "dsl/algorithm/rounding.h"

#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr converted(const Expr &e) {
    if (const auto *cast = e.as<hi::Cast>()) {
        return cast->value;
    }
    const auto *call = e.as<hi::Call>();
    const std::string_view name = call ? math::primitive_name(call) : "";
    return name == "convert" || name == "explicit_cast" ? call->args[0] : Expr();
}

Expr before_rounding(const Expr &e) {
    const Expr wide = e.type().is_float() && e.type().bits() == 16 ? converted(e) : Expr();
    return wide.defined() && wide.type().is_float() && wide.type().bits() == 32 ? wide : Expr();
}

}  // namespace tilewright
