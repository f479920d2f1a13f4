// Pooling: folds over a window of the spatial dimensions.
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/contractions.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

struct Pool {
    TensorValue a;
    std::vector<Extent> kernel;
    std::vector<int> stride, padding, dilation;
    const TensorMeta *result = nullptr;

    Pool(TranslationContext &context, const Node &node)
        : a(context.operand(node, "a")),
          kernel(TranslationContext::extents(node, "kernel")),
          stride(TranslationContext::integers(node, "stride")),
          padding(TranslationContext::integers(node, "padding")),
          dilation(kernel.size(), 1),
          result(&TranslationContext::result_meta(node)) {
        if (node.find("dilation")) {
            dilation = TranslationContext::integers(node, "dilation");
        }
        std::size_t n = kernel.size();
        internal_assert(stride.size() == n && padding.size() == n && dilation.size() == n && a.rank() >= static_cast<int>(n),
                        "{} ({}): kernel, stride, padding and dilation need equally many entries", node.name, node.target);
    }

    struct Place {
        Indices at;
        Expr is_inside;
        Expr flat;  ///< row-major place in the spatial dimensions
    };
    Place place(const Indices &arguments, const Indices &reduced) const {
        Place result_place;
        std::size_t leading = arguments.size() - kernel.size();
        result_place.at.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(leading));
        for (std::size_t i = 0; i < kernel.size(); i++) {
            int dim = static_cast<int>(leading + i);
            WindowPlace window = window_place(arguments[leading + i], result->sizes[leading + i], reduced[i], kernel[i], a.size(dim),
                                              stride[i], padding[i], dilation[i]);
            result_place.at.push_back(window.clamped);
            result_place.is_inside = both(result_place.is_inside, window.is_inside);
            result_place.flat = result_place.flat.defined() ? result_place.flat * a.extent(dim) + window.clamped : window.clamped;
        }
        return result_place;
    }
};

Expr or_outside(const Expr &is_inside, const Expr &value, const Expr &outside) {
    return is_inside.defined() ? hi::Select::make(is_inside, value, outside) : value;
}

/// Where nobody asks for the places.
void pool_maximum(TranslationContext &context, const Node &node, const Pool &pool) {
    Halide::Func func = context.add_reduction(
        node, "", pool.result->sizes, Combiner::maximum, pool.kernel, [&](const Indices &arguments, const Indices &reduced) {
            Pool::Place place = pool.place(arguments, reduced);
            return std::vector<Expr>{or_outside(place.is_inside, pool.a(place.at), identity(Combiner::maximum, {pool.a.type()})[0])};
        });
    context.define_results(node, {call(func, TranslationContext::indices(node)), hi::make_zero(Halide::Int(64))});
}

void pool_max(TranslationContext &context, const Node &node) {
    Pool pool(context, node);
    if (!context.is_element_read(node, 1)) {
        pool_maximum(context, node, pool);
        return;
    }
    Halide::Func func = context.add_reduction(
        node, "", pool.result->sizes, Combiner::arg_maximum, pool.kernel, [&](const Indices &arguments, const Indices &reduced) {
            Pool::Place place = pool.place(arguments, reduced);
            std::vector<Expr> outside = identity(Combiner::arg_maximum, {pool.a.type(), Halide::Int(64)});
            return std::vector<Expr>{or_outside(place.is_inside, pool.a(place.at), outside[0]),
                                     or_outside(place.is_inside, math::convert(Halide::Int(64), place.flat), outside[1])};
        });
    Indices at = TranslationContext::indices(node);
    context.define_results(node, {call(func, at, 0), call(func, at, 1)});
}

void pool_sum(TranslationContext &context, const Node &node) {
    Pool pool(context, node);
    Halide::Func func = context.add_reduction(
        node, "", pool.result->sizes, Combiner::sum, pool.kernel, [&](const Indices &arguments, const Indices &reduced) {
            Pool::Place place = pool.place(arguments, reduced);
            return std::vector<Expr>{or_outside(place.is_inside, pool.a(place.at), constant(pool.a.type(), 0.0))};
        });
    context.define_results(node, {call(func, TranslationContext::indices(node))});
}

}  // namespace

void add_pools(Table &table) {
    table["tw.pool_max"] = pool_max;
    table["tw.pool_sum"] = pool_sum;
}

}  // namespace tilewright::translation
