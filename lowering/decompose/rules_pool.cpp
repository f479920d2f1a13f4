// Pooling over windows of one to three dimensions.
#include <algorithm>
#include <limits>

#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

struct Window {
    Extents kernel, stride, padding, dilation;
    bool ceil_mode = false;
};

Window read_window(const Arguments &a, std::size_t spatial) {
    Window window;
    const Extents ones(spatial, Extent(1));
    window.kernel = expand_list(a.extents("kernel_size"), spatial, ones);
    window.stride = expand_list(a.extents("stride", Extents{}), spatial, window.kernel);
    window.padding = expand_list(a.extents("padding", Extents{}), spatial, Extents(spatial, Extent(0)));
    window.dilation = expand_list(a.extents("dilation", Extents{}), spatial, ones);
    window.ceil_mode = a.flag("ceil_mode", false);
    return window;
}

/// Number of windows along one dimension. With ceil_mode the last one may hang over, but starts inside the input or its left padding.
Extent window_count(const Extent &size, const Window &w, std::size_t i) {
    const Extent reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
    const Extent room = size + w.padding[i] * 2 - reach;
    if (!w.ceil_mode) {
        return floor_div(room, w.stride[i]) + 1;
    }
    const Extent count = ceil_div(room, w.stride[i]) + 1;
    if (!count.is_constant() || !size.is_constant()) {
        return count;
    }
    const bool starts_outside = (count.value() - 1) * w.stride[i].value() >= size.value() + w.padding[i].value();
    return starts_outside ? count - 1 : count;
}

/// Adds a batch dimension where it is missing, and removes it from the results.
Results pooled(Builder &b, Node *self, std::size_t spatial, const std::function<std::vector<Node *>(Node *)> &pool) {
    const bool unbatched = rank_of(self) == static_cast<int>(spatial) + 1;
    std::vector<Node *> results = pool(unbatched ? b.unsqueeze(self, 0) : self);
    for (Node *&result : results) {
        result = unbatched ? b.squeeze(result, {0}) : result;
    }
    return results;
}

Extents pooled_sizes(const Node *x, const Window &window) {
    Extents out(sizes_of(x).begin(), sizes_of(x).begin() + 2);
    for (std::size_t i = 0; i < window.kernel.size(); ++i) {
        out.push_back(window_count(sizes_of(x)[i + 2], window, i));
    }
    return out;
}

Rule max_pool_rule(std::size_t spatial, bool with_indices) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const Window w = read_window(a, spatial);
        return pooled(b, self, spatial, [&](Node *x) -> std::vector<Node *> {
            auto [values, places] = b.pool_max(b.to_compute(x), w.kernel, w.stride, w.padding, w.dilation, pooled_sizes(x, w));
            Node *rounded = b.convert(values, dtype_of(self));
            return with_indices ? std::vector<Node *>{rounded, places} : std::vector<Node *>{rounded};
        });
    };
}

/// How many elements each window of one dimension has: of the input, or with its padding counted in.
Node *window_lengths(Builder &b, const Extent &size, const Extent &count, const Window &w, std::size_t i, bool include_pad) {
    Node *start = b.iota(count, Extent(0) - w.padding[i], w.stride[i], DType::int64);
    Node *end = b.minimum(b.add(start, w.kernel[i]), include_pad ? size + w.padding[i] : size);
    return b.sub(end, include_pad ? start : b.maximum(start, 0));
}

/// True where each window lies inside the input, so that all have one length.
bool windows_fit(const Node *x, const Extents &out, const Window &w, bool include_pad) {
    for (std::size_t i = 0; i < w.kernel.size(); ++i) {
        const bool padded = !(w.padding[i] == Extent(0));
        if (padded && !include_pad) {
            return false;
        }
        const Extent end = (out[i + 2] - 1) * w.stride[i] + w.kernel[i] - w.padding[i];
        const Extent limit = sizes_of(x)[i + 2] + w.padding[i];
        if (w.ceil_mode && !(end.is_constant() && limit.is_constant() && end.value() <= limit.value())) {
            return false;
        }
    }
    return true;
}

/// Integers are divided as in C.
Node *average(Builder &b, Node *sum, const Operand &count) {
    return b.binary(is_floating_point(dtype_of(sum)) ? "div" : "div_trunc", sum, count);
}

Rule average_pool_rule(std::size_t spatial) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const Window w = read_window(a, spatial);
        const bool include_pad = a.flag("count_include_pad", true);
        return pooled(b, self, spatial, [&](Node *original) -> std::vector<Node *> {
            Node *x = b.to_compute(original);
            const Extents out = pooled_sizes(x, w);
            Node *sum = b.pool_sum(x, w.kernel, w.stride, w.padding, out);
            if (std::optional<std::int64_t> divisor = a.optional_integer("divisor_override")) {
                return {b.convert(average(b, sum, *divisor), dtype_of(self))};
            }
            if (windows_fit(x, out, w, include_pad)) {
                return {b.convert(average(b, sum, product(w.kernel)), dtype_of(self))};
            }
            Node *count = nullptr;
            for (std::size_t i = 0; i < spatial; ++i) {
                Extents along(spatial, Extent(1));
                along[i] = out[i + 2];
                Node *length = b.reshape(window_lengths(b, sizes_of(x)[i + 2], out[i + 2], w, i, include_pad), along);
                count = count ? b.mul(count, length) : length;
            }
            return {b.convert(average(b, sum, b.convert(count, dtype_of(sum))), dtype_of(self))};
        });
    };
}

/// out[.., i] = mean of in[.., floor(i * in / out) : ceil((i + 1) * in / out)], one dimension at a time.
Node *adaptive_average(Builder &b, Node *x, int dim, const Extent &out) {
    const Extent in = sizes_of(x)[dim];
    if (out == in) {
        return x;
    }
    if (out == Extent(1)) {
        return b.mean(x, {dim}, true);
    }
    if (mod(in, out) == Extent(0)) {
        Extents split = sizes_of(x);
        split[dim] = floor_div(in, out);
        split.insert(split.begin() + dim, out);
        return b.mean(b.reshape(x, split), {dim + 1});
    }
    Node *place = b.iota(out);
    Node *start = b.div_floor(b.mul(place, in), out);
    Node *end = b.div_floor(b.add(b.mul(b.add(place, 1), in), out - 1), out);
    Node *source = b.unsqueeze(b.iota(in), 1);
    Node *inside = b.logical_and(b.ge(source, start), b.lt(source, end));
    Node *share = b.div(b.convert(inside, dtype_of(x)), b.convert(b.sub(end, start), dtype_of(x)));  // [in, out]
    const int last = rank_of(x) - 1;
    return b.transpose(matmul(b, b.transpose(x, dim, last), share), dim, last);
}

Rule adaptive_average_rule(int spatial) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("self");
        const std::vector<Extent> out = a.result() ? a.result()->sizes : a.extents("output_size");
        Node *x = b.to_compute(self);
        Dims whole;
        Extents windows;  // where they divide the input
        for (int i = 0; i < spatial; ++i) {
            const int dim = rank_of(x) - spatial + i;
            const Extent &count = out[out.size() - spatial + i], &size = sizes_of(x)[dim];
            if (count == Extent(1)) {
                whole.push_back(dim);
            }
            if (mod(size, count) == Extent(0)) {
                windows.push_back(floor_div(size, count));
            }
        }
        if (static_cast<int>(whole.size()) == spatial) {
            return {b.convert(b.mean(x, whole, true), dtype_of(self))};
        }
        if (static_cast<int>(windows.size()) == spatial) {
            return pooled(b, x, spatial, [&](Node *batched) -> std::vector<Node *> {
                Extents sizes(sizes_of(batched).begin(), sizes_of(batched).begin() + 2);
                sizes.insert(sizes.end(), out.end() - spatial, out.end());
                Node *sum = b.pool_sum(batched, windows, windows, Extents(spatial, Extent(0)), sizes);
                return {b.convert(average(b, sum, product(windows)), dtype_of(self))};
            });
        }
        for (int i = 0; i < spatial; ++i) {
            x = adaptive_average(b, x, rank_of(x) - spatial + i, out[out.size() - spatial + i]);
        }
        return {b.convert(x, dtype_of(self))};
    };
}

/// Largest elements of windows of several sizes, and their flat places in the plane: one dimension after another, the innermost first, so
/// that the first of several equal ones in row-major order is found.
std::pair<Node *, Node *> adaptive_max(Builder &b, Node *x, const Extents &out) {
    Node *places = nullptr;
    Extent stride = 1;
    for (int i = static_cast<int>(out.size()) - 1; i >= 0; --i) {
        const int dim = i + 2;
        const Extent in = sizes_of(x)[dim];
        Node *window = b.unsqueeze(b.iota(out[i]), 1);
        Node *start = b.div_floor(b.mul(window, in), out[i]);
        Node *last = b.sub(b.div_floor(b.add(b.mul(b.add(window, 1), in), out[i] - 1), out[i]), 1);
        Node *step = b.unsqueeze(b.iota(floor_div(in - 1, out[i]) + 2), 0);  // of the longest window; the others repeat their last element
        std::vector<Node *> indices(static_cast<std::size_t>(rank_of(x)), nullptr);
        indices[dim] = b.minimum(b.add(start, step), last);
        auto [values, steps] = b.reduce_with_index("max_with_index", b.gather_nd(x, indices, false), dim + 1);
        Extents along(static_cast<std::size_t>(rank_of(x)), Extent(1));
        along[dim] = out[i];
        Node *place = b.add(steps, b.reshape(start, along));
        Node *flat = b.mul(place, stride);
        places = places ? b.add(flat, b.gather(places, dim, place)) : flat;
        stride = stride * in;
        x = values;
    }
    return {x, places};
}

/// Windows that divide the input are ordinary pooling.
Rule adaptive_max_rule(int spatial) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const Extents requested = expand_list(a.extents("output_size"), spatial, {});
        return pooled(b, self, spatial, [&](Node *x) -> std::vector<Node *> {
            Extents kernel;
            bool divides = true;
            for (int i = 0; i < spatial; ++i) {
                const Extent in = sizes_of(x)[i + 2];
                divides = divides && mod(in, requested[i]) == Extent(0);
                kernel.push_back(floor_div(in, requested[i]));
            }
            const Extents zeros(spatial, Extent(0));
            const Extents ones(spatial, Extent(1));
            Extents out(sizes_of(x).begin(), sizes_of(x).begin() + 2);
            out.insert(out.end(), requested.begin(), requested.end());
            auto [values, places] =
                divides ? b.pool_max(b.to_compute(x), kernel, kernel, zeros, ones, out) : adaptive_max(b, b.to_compute(x), requested);
            return {b.convert(values, dtype_of(self)), places};
        });
    };
}

/// Puts each value at its flat place in the output plane.
Rule max_unpool_rule(int spatial) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const Extents out = expand_list(a.extents("output_size"), spatial, {});
        Extents outer(sizes_of(self).begin(), sizes_of(self).end() - spatial);
        const auto flat = [&](Node *x, const Extent &plane) {
            Extents size = outer;
            size.push_back(plane);
            return b.reshape(x, size);
        };
        const Extent inside = product(Extents(sizes_of(self).end() - spatial, sizes_of(self).end()));
        Extents size = outer;
        size.push_back(product(out));
        Node *zeros = b.full(size, Extent(0), dtype_of(self));
        Node *placed = b.scatter(zeros, static_cast<int>(outer.size()), flat(a.tensor("indices"), inside), flat(self, inside), "");
        size.pop_back();
        size.insert(size.end(), out.begin(), out.end());
        return b.reshape(placed, size);
    };
}

}  // namespace

void add_pool_rules(RuleTable &table) {
    table.add("aten.max_unpool2d.default", max_unpool_rule(2));
    table.add("aten.max_unpool3d.default", max_unpool_rule(3));
    for (int spatial : {1, 2, 3}) {
        table.add(fmt::format("aten.max_pool{}d.default", spatial), max_pool_rule(spatial, false));
        table.add(fmt::format("aten.max_pool{}d_with_indices.default", spatial), max_pool_rule(spatial, true));
        table.add(fmt::format("aten.avg_pool{}d.default", spatial), average_pool_rule(spatial));
        table.add(fmt::format("aten.adaptive_avg_pool{}d.default", spatial), adaptive_average_rule(spatial));
        table.add(fmt::format("aten._adaptive_avg_pool{}d.default", spatial), adaptive_average_rule(spatial));
        table.add(fmt::format("aten.adaptive_max_pool{}d.default", spatial), adaptive_max_rule(spatial));
    }
}

}  // namespace tilewright
