// The builder's reductions, scans, contractions and windows.
#include <algorithm>
#include <limits>

#include "dsl/error.h"
#include "lowering/decompose/builder.h"

namespace tilewright {
namespace {

/// The sizes that are left when `dims` disappear, or shrink to 1.
Extents reduced(const Extents &size, const Dims &dims, bool keep) {
    Extents result;
    for (int i = 0; i < static_cast<int>(size.size()); ++i) {
        if (std::find(dims.begin(), dims.end(), i) == dims.end()) {
            result.push_back(size[i]);
        } else if (keep) {
            result.emplace_back(1);
        }
    }
    return result;
}

bool is_empty(const Node *a) {
    const Extents &size = sizes_of(a);
    return std::find(size.begin(), size.end(), Extent(0)) != size.end();
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What a reduction over no elements gives, or empty where it has no value.
std::optional<Number> identity(std::string_view name) {
    if (name == "sum") {
        return Extent(0);
    }
    if (name == "prod") {
        return Extent(1);
    }
    if (name == "any" || name == "all") {
        return name == "all";
    }
    if (name == "logsumexp") {
        return -infinity;
    }
    return std::nullopt;
}

}  // namespace

Node *Builder::reduce(std::string_view name, Node *a, const Dims &dims, bool keep) {
    if (dims.empty()) {
        return a;
    }
    const Extents size = reduced(sizes_of(a), dims, false);
    const Extents kept = reduced(sizes_of(a), dims, keep);
    if (is_empty(a)) {
        std::optional<Number> value = identity(name);
        if (!value && std::find(size.begin(), size.end(), Extent(0)) == size.end()) {
            user_error("{} over a dimension of shape {} that has no elements has no value", name, to_string(sizes_of(a)));
        }
        return full(kept, value.value_or(Extent(0)), dtype_of(a));
    }
    return reshape(emit(fmt::format("prims.{}", name), {{"a", a}, {"dims", to_argument(dims)}}, dtype_of(a), size), kept);
}

Node *Builder::mean(Node *a, const Dims &dims, bool keep) {
    Extent count = 1;
    for (int dim : dims) {
        count = count * sizes_of(a)[dim];
    }
    if (count == Extent(0)) {
        return full(reduced(sizes_of(a), dims, keep), std::numeric_limits<double>::quiet_NaN(), dtype_of(a));
    }
    return div(sum(a, dims, keep), count);
}

Node *Builder::arg_reduce(std::string_view name, Node *a, int dim) {
    Extents size = reduced(sizes_of(a), {dim}, false);
    if (sizes_of(a)[dim] == Extent(0)) {
        user_error("{} over a dimension of shape {} that has no elements has no value", name, to_string(sizes_of(a)));
    }
    return emit(fmt::format("prims.{}", name), {{"a", a}, {"dim", Extent(dim)}}, DType::int64, std::move(size));
}

std::pair<Node *, Node *> Builder::reduce_with_index(std::string_view name, Node *a, int dim) {
    if (sizes_of(a)[dim] == Extent(0)) {
        user_error("{} over a dimension of shape {} that has no elements has no value", name, to_string(sizes_of(a)));
    }
    const Extents size = reduced(sizes_of(a), {dim}, false);
    return emit_pair(fmt::format("prims.{}", name), {{"a", a}, {"dim", Extent(dim)}}, TensorMeta::contiguous(dtype_of(a), size),
                     TensorMeta::contiguous(DType::int64, size));
}

std::pair<Node *, Node *> Builder::var_mean(Node *a, const Dims &dims, double correction, bool keep) {
    const Extents size = reduced(sizes_of(a), dims, false);
    const Extents kept = reduced(sizes_of(a), dims, keep);
    if (is_empty(a)) {
        Node *nan = full(kept, std::numeric_limits<double>::quiet_NaN(), dtype_of(a));
        return {nan, nan};
    }
    const TensorMeta meta = TensorMeta::contiguous(dtype_of(a), size);
    auto [variance, mean] = emit_pair("prims.var_mean", {{"a", a}, {"dims", to_argument(dims)}, {"correction", correction}}, meta, meta);
    return {reshape(variance, kept), reshape(mean, kept)};
}

Node *Builder::scan(std::string_view name, Node *a, int dim) {
    if (rank_of(a) == 0 || sizes_of(a)[dim] == Extent(1)) {
        return a;
    }
    return emit(fmt::format("prims.{}", name), {{"a", a}, {"dim", Extent(dim)}}, dtype_of(a), sizes_of(a));
}

std::pair<Node *, Node *> Builder::scan_with_index(std::string_view name, Node *a, int dim) {
    if (rank_of(a) == 0 || sizes_of(a)[dim] == Extent(1)) {
        return {a, full(sizes_of(a), Extent(0), DType::int64)};
    }
    return emit_pair(fmt::format("prims.{}", name), {{"a", a}, {"dim", Extent(dim)}}, TensorMeta::contiguous(dtype_of(a), sizes_of(a)),
                     TensorMeta::contiguous(DType::int64, sizes_of(a)));
}

Node *Builder::dot(Node *a, Node *b, DType out) {
    const int rank = rank_of(a);
    internal_assert(rank >= 2 && rank_of(b) == rank, "tw.dot of {} and {}", to_string(sizes_of(a)), to_string(sizes_of(b)));
    Extents size = sizes_of(a);
    const Extent inner = size[rank - 1];
    if (!may_equal(inner, sizes_of(b)[rank - 2])) {
        user_error("a product of shapes {} and {}, whose inner sizes differ", to_string(size), to_string(sizes_of(b)));
    }
    size[rank - 1] = sizes_of(b)[rank - 1];
    if (inner == Extent(0)) {
        return full(size, Extent(0), out);
    }
    return emit("tw.dot", {{"a", a}, {"b", b}, {"out_dtype", out}}, out, std::move(size));
}

Node *Builder::convolution(Node *input, Node *weight, const Convolution &how, DType out) {
    const Extents &in = sizes_of(input);
    const Extents &kernel = sizes_of(weight);
    Extents size = {in[0], kernel[0]};
    for (std::size_t i = 2; i < in.size(); ++i) {
        const std::size_t s = i - 2;
        const Extent reach = how.dilation[s] * (kernel[i] - 1);
        size.push_back(floor_div(in[i] + how.padding[s] * 2 - reach - 1, how.stride[s]) + 1);
    }
    return emit("tw.convolution",
                {{"input", input},
                 {"weight", weight},
                 {"stride", to_argument(how.stride)},
                 {"padding", to_argument(how.padding)},
                 {"dilation", to_argument(how.dilation)},
                 {"groups", Extent(how.groups)},
                 {"out_dtype", out}},
                out, std::move(size));
}

std::pair<Node *, Node *> Builder::pool_max(Node *a, const Extents &kernel, const Extents &stride, const Extents &padding,
                                            const Extents &dilation, const Extents &out) {
    return emit_pair("tw.pool_max",
                     {{"a", a},
                      {"kernel", to_argument(kernel)},
                      {"stride", to_argument(stride)},
                      {"padding", to_argument(padding)},
                      {"dilation", to_argument(dilation)}},
                     TensorMeta::contiguous(dtype_of(a), out), TensorMeta::contiguous(DType::int64, out));
}

Node *Builder::pool_sum(Node *a, const Extents &kernel, const Extents &stride, const Extents &padding, const Extents &out) {
    return emit("tw.pool_sum",
                {{"a", a}, {"kernel", to_argument(kernel)}, {"stride", to_argument(stride)}, {"padding", to_argument(padding)}},
                dtype_of(a), out);
}

}  // namespace tilewright
