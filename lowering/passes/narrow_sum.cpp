#include "lowering/passes/narrow_sum.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/rounding.h"
#include "lowering/passes/index_math.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// The float that `e` rounds to a 16-bit type; undefined where it is something else.
Expr rounded_value(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    return call && math::primitive_name(call) == "rounded_to_bfloat16" ? call->args[0] : before_rounding(e);
}

/// The lane of a vector that `e` converts to float; undefined where it is something else.
Expr converted_lane(const Expr &e, const For &lanes, const Launch &launch) {
    const Expr narrow = e.type() == Halide::Float(32) ? converted(e) : Expr();
    const auto *read = narrow.defined() ? narrow.as<hi::Call>() : nullptr;
    const bool is_lane = read && read->call_type == hi::Call::Halide && is_whole_vector(*launch.find_buffer(read->name), read->args, lanes);
    return is_lane ? narrow : Expr();
}

}  // namespace

bool is_whole_vector(const Buffer &buffer, const std::vector<Expr> &indices, const For &lanes) {
    return buffer.memory == Memory::registers && buffer.types.size() == 1 && buffer.types[0].is_float() && buffer.types[0].bits() == 16 &&
           !indices.empty() && as_variable(indices.back()) == lanes.variable && buffer.extents.back() == lanes.extent &&
           std::none_of(indices.begin(), indices.end() - 1, [&](const Expr &e) { return mentions(e, lanes.variable); });
}

std::optional<NarrowSum> narrow_sum(const Expr &e, const For &lanes, const Launch &launch) {
    const Expr wide = rounded_value(e);
    const auto *sum = wide.defined() ? wide.as<hi::Add>() : nullptr;
    const auto *difference = wide.defined() ? wide.as<hi::Sub>() : nullptr;
    if (!sum && !difference) {
        return std::nullopt;
    }
    const NarrowSum result{converted_lane(sum ? sum->a : difference->a, lanes, launch),
                           converted_lane(sum ? sum->b : difference->b, lanes, launch), difference != nullptr};
    const Halide::Type type = e.type().bits() == 16 ? e.type() : Halide::BFloat(16);
    const bool fits = result.left.defined() && result.right.defined() && result.left.type() == type && result.right.type() == type;
    return fits ? std::optional(result) : std::nullopt;
}

bool is_same(const NarrowSum &a, const NarrowSum &b) {
    return a.minus == b.minus && hi::graph_equal(a.left, b.left) && hi::graph_equal(a.right, b.right);
}

}  // namespace tilewright
