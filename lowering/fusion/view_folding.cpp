#include "lowering/fusion/view_folding.h"

#include <algorithm>
#include <limits>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::vector<std::string> names_of(const std::vector<IndexAxis> &axes) {
    std::vector<std::string> names;
    for (const IndexAxis &axis : axes) {
        names.push_back(axis.name);
    }
    return names;
}

std::vector<std::string> axes_in(const Expr &index, const std::vector<IndexAxis> &axes) {
    std::vector<std::string> found;
    for (const std::string &name : variables_of(index)) {
        if (std::any_of(axes.begin(), axes.end(), [&](const IndexAxis &axis) { return axis.name == name; })) {
            found.push_back(name);
        }
    }
    return found;
}

/// The extents that a stride may be: the tensor's own strides, and those times products of neighbouring sizes.
std::vector<Extent> stride_candidates(const TensorMeta &tensor, const std::vector<IndexAxis> &axes) {
    std::vector<Extent> products{1};
    const auto add_products = [&](const std::vector<Extent> &sizes) {
        for (std::size_t begin = 0; begin < sizes.size(); ++begin) {
            Extent running = 1;
            for (std::size_t end = begin; end < sizes.size(); ++end) {
                running = running * sizes[end];
                products.push_back(running);
            }
        }
    };
    add_products(tensor.sizes);
    std::vector<Extent> extents;
    for (const IndexAxis &axis : axes) {
        extents.push_back(axis.extent);
    }
    add_products(extents);
    std::vector<Extent> candidates;
    for (const Extent &product : products) {
        candidates.push_back(product);
    }
    for (const Extent &stride : tensor.strides) {
        for (const Extent &product : products) {
            candidates.push_back(stride * product);
        }
    }
    return candidates;
}

struct TwoPlaces {
    Expr outer, inner;
    std::int64_t factor = 1;
};

/// index = outer * factor + inner, with the inner part an axis of `factor` places; whole factors more lie in the outer part.
std::optional<TwoPlaces> two_places(const Expr &index, const std::vector<IndexAxis> &axes) {
    const auto *sum = index.as<hi::Add>();
    if (const auto first = sum ? hi::as_const_int(sum->b) : std::nullopt) {
        auto places = two_places(sum->a, axes);
        if (!places || *first < 0 || *first % places->factor != 0) {
            return std::nullopt;
        }
        places->outer = places->outer + static_cast<int>(*first / places->factor);
        return places;
    }
    const auto *product = sum ? sum->a.as<hi::Mul>() : nullptr;
    const auto factor = product ? hi::as_const_int(product->b) : std::nullopt;
    const auto *inner = sum ? sum->b.as<hi::Variable>() : nullptr;
    const bool fits = factor && inner && std::any_of(axes.begin(), axes.end(), [&](const IndexAxis &axis) {
                          return axis.name == inner->name && axis.extent == Extent(*factor);
                      });
    return fits ? std::optional(TwoPlaces{product->a, sum->b, *factor}) : std::nullopt;
}

}  // namespace

bool reads_at_variables(const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes) {
    std::set<std::string> seen;
    for (const Expr &index : indices) {
        const auto *variable = index.as<hi::Variable>();
        if (!(variable && !axes_in(index, axes).empty() && seen.insert(variable->name).second) && !hi::is_const_zero(index)) {
            return false;
        }
    }
    return true;
}

bool reads_shifted(const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes) {
    std::set<std::string> seen;
    const std::vector<std::string> names = names_of(axes);
    for (const Expr &index : indices) {
        if (contains_read(index)) {
            continue;  // a gather: no view
        }
        const auto affine = as_affine(index, names);
        if (!affine || affine->terms.size() > 1) {
            return false;
        }
        if (affine->terms.size() == 1 && (affine->terms[0].second != 1 || !seen.insert(affine->terms[0].first).second)) {
            return false;
        }
    }
    return true;
}

namespace {

/// The places that a shifted index takes: [first, first + count).
struct Places {
    std::int64_t first = 0;
    std::int64_t count = 1;
};

/// Nothing where the first is not known.
std::optional<Places> places_of(const Expr &index, const std::vector<IndexAxis> &axes) {
    const auto affine = contains_read(index) ? std::nullopt : as_affine(index, names_of(axes));
    const auto first = affine ? hi::as_const_int(hi::simplify(affine->constant)) : std::nullopt;
    if (!first) {
        return std::nullopt;
    }
    Places places{*first, 1};
    for (const IndexAxis &axis : axes) {
        if (!affine->terms.empty() && affine->terms[0].first == axis.name) {
            places.count = axis.extent.is_constant() ? axis.extent.value() : std::numeric_limits<std::int32_t>::max();
        }
    }
    return places;
}

}  // namespace

bool overlap(const std::vector<Expr> &a, const std::vector<IndexAxis> &a_axes, const std::vector<Expr> &b,
             const std::vector<IndexAxis> &b_axes) {
    if (!reads_shifted(a, a_axes) || !reads_shifted(b, b_axes)) {
        return false;
    }
    bool differ = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto p = places_of(a[i], a_axes), q = places_of(b[i], b_axes);
        if (!p || !q || p->first >= q->first + q->count || q->first >= p->first + p->count) {
            return false;
        }
        differ |= p->first != q->first;
    }
    return differ;
}

std::optional<FoldedView> fold_view(const TensorMeta &tensor, const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes,
                                    const SamplePoints &samples) {
    if (std::any_of(indices.begin(), indices.end(), contains_read)) {
        return std::nullopt;
    }
    if (samples.is_empty()) {
        return std::nullopt;
    }
    std::vector<std::int64_t> address(samples.size(), 0);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::vector<std::int64_t> index = samples.evaluate(indices[i]);
        const std::vector<std::int64_t> stride = samples.evaluate(tensor.strides[i]);
        if (index.empty()) {
            return std::nullopt;
        }
        for (std::size_t p = 0; p < address.size(); ++p) {
            address[p] += index[p] * stride[p];
        }
    }
    const bool is_constant = samples.runs().size() == 1;  // then strides are constants and need no candidates
    const auto linear = linear_address(address, axes, samples, is_constant ? std::vector<Extent>() : stride_candidates(tensor, axes));
    if (!linear) {
        return std::nullopt;
    }
    FoldedView view;
    view.meta.dtype = tensor.dtype;
    view.meta.offset = tensor.offset + linear->offset;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        if (linear->strides[i] == Extent(0)) {
            continue;  // the same for every place along the axis: a broadcast
        }
        const auto stride = linear->strides[i].constant();
        if (stride && *stride < 0) {
            return std::nullopt;
        }
        view.meta.sizes.push_back(axes[i].extent);
        view.meta.strides.push_back(linear->strides[i]);
        view.indices.push_back(hi::Variable::make(Halide::Int(32), axes[i].name));
    }
    return view;
}

std::optional<FoldedView> split_view(const TensorMeta &tensor, const std::vector<Expr> &indices, const std::vector<IndexAxis> &axes) {
    FoldedView view;
    view.meta.dtype = tensor.dtype;
    view.meta.offset = tensor.offset;
    const auto add = [&](const Extent &size, const Extent &stride, const Expr &index) {
        view.meta.sizes.push_back(size);
        view.meta.strides.push_back(stride);
        view.indices.push_back(index);
    };
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const auto places = two_places(indices[i], axes);
        const auto size = tensor.sizes[i].constant();
        if (places && size && *size % places->factor == 0) {
            add(*size / places->factor, tensor.strides[i] * places->factor, places->outer);
            add(places->factor, tensor.strides[i], places->inner);
        } else {
            add(tensor.sizes[i], tensor.strides[i], indices[i]);
        }
    }
    return view.indices.size() > indices.size() ? std::optional(view) : std::nullopt;
}

}  // namespace tilewright
