// Upsampling: nearest, linear and cubic interpolation, one dimension at a time.
#include <array>

#include "lowering/decompose/interpolation.h"
#include "lowering/decompose/matmul.h"
#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {

Node *cubic_near(Builder &b, Node *t, double a) { return b.add(b.mul(b.mul(b.sub(b.mul(t, a + 2), a + 3), t), t), 1.0); }

Node *cubic_far(Builder &b, Node *t, double a) { return b.sub(b.mul(b.add(b.mul(b.sub(b.mul(t, a), 5 * a), t), 8 * a), t), 4 * a); }

namespace {

/// Sizes and scale factors of the resized dimensions, from either form of the operators.
struct Resize {
    Node *input;
    Extents size;
    std::vector<std::optional<double>> scales;
};

Resize read_resize(const Arguments &a, int spatial) {
    Resize resize{a.tensor(a.has("input") ? "input" : "self"), {}, {}};
    const Extents out = a.result() ? a.result()->sizes : Extents{};
    const std::vector<double> factors = a.reals("scale_factors");
    const std::optional<Extents> requested = a.optional_extents("output_size");
    static constexpr std::array names = {"scales_d", "scales_h", "scales_w"};
    for (int i = 0; i < spatial; ++i) {
        const Extent in = sizes_of(resize.input)[i + 2];
        if (requested) {
            resize.size.push_back((*requested)[i]);
        } else if (!out.empty()) {
            resize.size.push_back(out[i + 2]);
        } else {
            resize.size.emplace_back(static_cast<std::int64_t>(static_cast<double>(in.value()) * factors.at(i)));
        }
        if (!factors.empty()) {
            resize.scales.emplace_back(factors.at(i));
        } else {
            const char *name = spatial == 1 ? "scales" : names[3 - spatial + i];
            resize.scales.push_back(a.optional_real(name));
        }
    }
    return resize;
}

/// Distance in the input between neighbours of the output.
Node *step_between(Builder &b, const Extent &in, const Extent &out, std::optional<double> scale, bool align_corners, DType type) {
    if (align_corners) {
        if (out == Extent(1)) {
            return b.full({}, 0.0, type);
        }
        return b.div(b.full({}, in - 1, type), out - 1);
    }
    return scale && *scale > 0 ? b.full({}, 1.0 / *scale, type) : b.div(b.full({}, in, type), out);
}

Node *read_at(Builder &b, Node *x, int dim, Node *place) {
    std::vector<Node *> indices(rank_of(x), nullptr);
    indices[dim] = place;
    return b.gather_nd(x, indices, false);
}

/// A vector along one dimension.
Node *along(Builder &b, Node *vector, int dim, int rank) {
    Extents shape(rank, Extent(1));
    shape[dim] = sizes_of(vector)[0];
    return b.reshape(vector, shape);
}

Node *nearest(Builder &b, Node *x, int dim, const Extent &out, std::optional<double> scale, bool exact) {
    const Extent in = sizes_of(x)[dim];
    if (in == out && (!scale || *scale == 1)) {
        return x;
    }
    const bool whole = mod(out, in) == Extent(0) && in.is_constant() && out.is_constant();
    if (whole && (!scale || *scale == static_cast<double>(out.value() / in.value()))) {
        // Each element repeats: a view.
        Extents spread = sizes_of(x);
        Extents joined = sizes_of(x);
        spread.insert(spread.begin() + dim + 1, floor_div(out, in));
        joined[dim] = out;
        return b.reshape(b.broadcast(b.unsqueeze(x, dim + 1), spread), joined);
    }
    Node *place = b.iota(out, DType::float32);
    if (exact) {
        place = b.add(place, 0.5);
    }
    Node *source = b.floor(b.mul(place, step_between(b, in, out, scale, false, DType::float32)));
    return read_at(b, x, dim, b.minimum(b.convert(source, DType::int64), in - 1));
}

/// Place in the input that an output element is read from.
Node *source_place(Builder &b, const Extent &in, const Extent &out, std::optional<double> scale, bool align_corners, DType type) {
    Node *step = step_between(b, in, out, scale, align_corners, type);
    Node *place = b.iota(out, type);
    return align_corners ? b.mul(place, step) : b.sub(b.mul(b.add(place, 0.5), step), 0.5);
}

Node *interpolate_linear(Builder &b, Node *x, int dim, const Extent &out, std::optional<double> scale, bool align_corners) {
    const Extent in = sizes_of(x)[dim];
    if (in == out && (align_corners || !scale || *scale == 1)) {
        return x;
    }
    Node *place = b.maximum(source_place(b, in, out, scale, align_corners, dtype_of(x)), 0.0);
    Node *low = b.minimum(b.convert(place, DType::int64), in - 1);
    Node *high = b.minimum(b.add(low, 1), in - 1);
    Node *share = b.minimum(b.maximum(b.sub(place, b.convert(low, dtype_of(x))), 0.0), 1.0);
    Node *upper = along(b, share, dim, rank_of(x));
    Node *lower = along(b, b.sub(1.0, share), dim, rank_of(x));
    return b.add(b.mul(read_at(b, x, dim, low), lower), b.mul(read_at(b, x, dim, high), upper));
}

Node *interpolate_cubic(Builder &b, Node *x, int dim, const Extent &out, std::optional<double> scale, bool align_corners) {
    const Extent in = sizes_of(x)[dim];
    if (in == out && (align_corners || !scale || *scale == 1)) {
        return x;
    }
    Node *place = source_place(b, in, out, scale, align_corners, dtype_of(x));
    Node *base = b.minimum(b.convert(b.floor(place), DType::int64), in - 1);
    Node *t = b.minimum(b.maximum(b.sub(place, b.convert(base, dtype_of(x))), 0.0), 1.0);
    Node *rest = b.sub(1.0, t);
    Node *weights[] = {cubic_far(b, b.add(t, 1.0)), cubic_near(b, t), cubic_near(b, rest), cubic_far(b, b.add(rest, 1.0))};
    Node *sum = nullptr;
    for (int tap = 0; tap < 4; ++tap) {
        Node *from = b.minimum(b.maximum(b.add(base, tap - 1), 0), in - 1);
        Node *term = b.mul(read_at(b, x, dim, from), along(b, weights[tap], dim, rank_of(x)));
        sum = sum ? b.add(sum, term) : term;
    }
    return sum;
}

/// Interpolation is done in floating point; 8-bit images are rounded and held within their range after each dimension.
Node *to_interpolate(Builder &b, Node *input) { return b.convert(input, compute_type(to_floating(dtype_of(input)))); }

Node *rounded(Builder &b, Node *value, DType type) {
    if (!is_floating_point(type) && is_floating_point(dtype_of(value))) {
        value = b.minimum(b.maximum(b.floor(b.add(value, 0.5)), 0.0), 255.0);
    }
    return value;
}

/// Weights of an antialiasing filter as a matrix [in, out]: each output is a mean of what its stretched kernel covers.
Node *antialiasing_weights(Builder &b, const Extent &in, const Extent &out, std::optional<double> scale, bool align_corners, bool cubic,
                           DType type) {
    Node *step = step_between(b, in, out, scale, align_corners, type);
    Node *stretch = b.maximum(step, 1.0);
    Node *support = b.mul(stretch, cubic ? 2.0 : 1.0);
    Node *center = b.mul(b.add(b.iota(out, type), 0.5), step);
    Node *first = b.maximum(b.convert(b.add(b.sub(center, support), 0.5), DType::int64), 0);
    Node *end = b.minimum(b.convert(b.add(b.add(center, support), 0.5), DType::int64), in);
    Node *source = b.unsqueeze(b.iota(in), 1);
    Node *distance = b.abs(b.div(b.add(b.sub(b.convert(source, type), center), 0.5), stretch));
    Node *kernel = nullptr;
    if (cubic) {
        Node *far = b.where(b.lt(distance, 2.0), cubic_far(b, distance, -0.5), 0.0);
        kernel = b.where(b.lt(distance, 1.0), cubic_near(b, distance, -0.5), far);
    } else {
        kernel = b.where(b.lt(distance, 1.0), b.sub(1.0, distance), 0.0);
    }
    kernel = b.where(b.logical_and(b.ge(source, first), b.lt(source, end)), kernel, 0.0);
    return b.div(kernel, b.sum(kernel, {0}, true));
}

Rule antialiasing_rule(bool cubic) {
    return [=](Builder &b, const Arguments &a) {
        const Resize resize = read_resize(a, 2);
        Node *x = to_interpolate(b, resize.input);
        for (int i = 1; i >= 0; --i) {
            Node *weights = antialiasing_weights(b, sizes_of(x)[i + 2], resize.size[i], resize.scales[i], a.flag("align_corners", false),
                                                 cubic, dtype_of(x));
            x = b.transpose(matmul(b, b.transpose(x, i + 2, 3), weights), i + 2, 3);
            x = rounded(b, x, dtype_of(resize.input));
        }
        return b.convert(x, dtype_of(resize.input));
    };
}

enum class Mode { nearest, nearest_exact, linear, cubic };

Rule resize_rule(int spatial, Mode mode) {
    return [=](Builder &b, const Arguments &a) {
        const Resize resize = read_resize(a, spatial);
        const bool align_corners = a.flag("align_corners", false);
        const bool copies = mode == Mode::nearest || mode == Mode::nearest_exact;
        Node *x = copies ? resize.input : to_interpolate(b, resize.input);
        for (int i = spatial - 1; i >= 0; --i) {
            const int dim = i + 2;
            if (copies) {
                x = nearest(b, x, dim, resize.size[i], resize.scales[i], mode == Mode::nearest_exact);
            } else if (mode == Mode::linear) {
                x = interpolate_linear(b, x, dim, resize.size[i], resize.scales[i], align_corners);
            } else {
                x = interpolate_cubic(b, x, dim, resize.size[i], resize.scales[i], align_corners);
            }
            x = rounded(b, x, dtype_of(resize.input));
        }
        return b.convert(x, dtype_of(resize.input));
    };
}

}  // namespace

void add_resize_rules(RuleTable &table) {
    const auto add = [&](const char *name, int spatial, Mode mode) {
        table.add(fmt::format("aten.{}.default", name), resize_rule(spatial, mode));
        table.add(fmt::format("aten.{}.vec", name), resize_rule(spatial, mode));
    };
    for (int spatial : {1, 2, 3}) {
        add(fmt::format("upsample_nearest{}d", spatial).c_str(), spatial, Mode::nearest);
        add(fmt::format("_upsample_nearest_exact{}d", spatial).c_str(), spatial, Mode::nearest_exact);
    }
    add("upsample_linear1d", 1, Mode::linear);
    add("upsample_bilinear2d", 2, Mode::linear);
    add("upsample_trilinear3d", 3, Mode::linear);
    add("upsample_bicubic2d", 2, Mode::cubic);
    table.add({"aten._upsample_bilinear2d_aa.default", "aten._upsample_bilinear2d_aa.vec"}, antialiasing_rule(false));
    table.add({"aten._upsample_bicubic2d_aa.default", "aten._upsample_bicubic2d_aa.vec"}, antialiasing_rule(true));
}

}  // namespace tilewright
