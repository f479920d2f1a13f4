// Sampling at places that a grid gives in normalised coordinates.
#include <array>

#include "lowering/decompose/interpolation.h"
#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

// PyTorch's numbers for the modes.
enum Interpolation : std::int64_t { linear = 0, nearest = 1, cubic = 2 };
enum Padding : std::int64_t { zeros = 0, border = 1, reflection = 2 };

class Sampler {
public:
    Sampler(Builder &b, Node *input, std::int64_t padding, bool align_corners)
        : b_(b), input_(input), padding_(padding), align_(align_corners), spatial_(rank_of(input) - 2) {}

    /// From -1 … 1 to places along one dimension.
    Node *place(Node *coordinate, const Extent &size) const {
        if (align_) {
            return b_.mul(b_.div(b_.add(coordinate, 1.0), 2.0), size - 1);
        }
        return b_.div(b_.sub(b_.mul(b_.add(coordinate, 1.0), size), 1.0), 2.0);
    }

    /// Brings places outside to the border, or folds them back inside.
    Node *kept_inside(Node *place, const Extent &size) const {
        if (padding_ == zeros) {
            return place;
        }
        if (padding_ == reflection) {
            const Extent low = align_ ? Extent(0) : Extent(-1);
            const Extent high = align_ ? (size - 1) * 2 : size * 2 - 1;
            if (low == high) {
                return b_.full(sizes_of(place), 0.0, dtype_of(place));
            }
            const double start = static_cast<double>(low.value()) / 2;
            Node *span = b_.div(b_.full({}, high - low, dtype_of(place)), 2.0);
            Node *distance = b_.abs(b_.sub(place, start));
            Node *extra = b_.binary("fmod", distance, span);
            Node *flips = b_.floor(b_.div(distance, span));
            Node *even = b_.eq(b_.binary("remainder", flips, 2.0), 0.0);
            place = b_.where(even, b_.add(extra, start), b_.add(b_.sub(span, extra), start));
        }
        return b_.minimum(b_.maximum(place, 0.0), size - 1);
    }

    /// Values at whole places (floats), one for each spatial dimension; 0 outside. The result is [N, C, places…].
    Node *read(const std::vector<Node *> &places) const {
        Node *inside = nullptr;
        std::vector<Node *> indices(rank_of(input_), nullptr);
        const Extents shape = sizes_of(places.front());
        for (int i = 0; i < spatial_; ++i) {
            const Extent size = sizes_of(input_)[i + 2];
            Node *here = b_.logical_and(b_.ge(places[i], 0.0), b_.lt(places[i], size));
            inside = inside ? b_.logical_and(inside, here) : here;
            // The comparison is done in floats: what is outside may be no integer at all.
            Node *safe = b_.where(here, places[i], 0.0);
            indices[i + 2] = b_.minimum(b_.maximum(b_.convert(safe, DType::int64), 0), size - 1);
        }
        Extents along(shape.size(), Extent(1));
        along[0] = shape[0];
        indices[0] = b_.broadcast(b_.reshape(b_.iota(shape[0]), along), shape);
        Node *values = b_.gather_nd(input_, indices, false);  // [N, places…, C]
        Dims order = {0, rank_of(values) - 1};
        for (int i = 1; i < rank_of(values) - 1; ++i) {
            order.push_back(i);
        }
        return b_.where(b_.unsqueeze(inside, 1), b_.permute(values, order), 0.0);
    }

private:
    Builder &b_;
    Node *input_;
    std::int64_t padding_;
    bool align_;
    int spatial_;
};

/// Sum over the corners around each place, each by the product of its shares.
Node *sample_linear(Builder &b, const Sampler &sampler, const std::vector<Node *> &places) {
    const int spatial = static_cast<int>(places.size());
    std::vector<std::array<Node *, 2>> corner, share;
    for (Node *place : places) {
        Node *low = b.floor(place);
        Node *high = b.add(low, 1.0);
        corner.push_back({low, high});
        share.push_back({b.sub(high, place), b.sub(place, low)});
    }
    Node *sum = nullptr;
    for (int which = 0; which < 1 << spatial; ++which) {
        std::vector<Node *> at;
        Node *weight = nullptr;
        for (int i = 0; i < spatial; ++i) {
            const int side = (which >> i) & 1;
            at.push_back(corner[i][side]);
            weight = weight ? b.mul(weight, share[i][side]) : share[i][side];
        }
        Node *term = b.mul(sampler.read(at), b.unsqueeze(weight, 1));
        sum = sum ? b.add(sum, term) : term;
    }
    return sum;
}

Node *sample_cubic(Builder &b, const Sampler &sampler, const std::vector<Node *> &places, const Extents &size) {
    std::vector<std::array<Node *, 4>> taps, weights;
    for (int i = 0; i < 2; ++i) {
        Node *base = b.floor(places[i]);
        Node *t = b.sub(places[i], base);
        Node *rest = b.sub(1.0, t);
        weights.push_back({cubic_far(b, b.add(t, 1.0)), cubic_near(b, t), cubic_near(b, rest), cubic_far(b, b.add(rest, 1.0))});
        taps.push_back({});
        for (int tap = 0; tap < 4; ++tap) {
            taps[i][tap] = sampler.kept_inside(b.add(base, static_cast<double>(tap - 1)), size[i + 2]);
        }
    }
    Node *sum = nullptr;
    for (int row = 0; row < 4; ++row) {
        Node *line = nullptr;
        for (int column = 0; column < 4; ++column) {
            Node *term = b.mul(sampler.read({b.floor(taps[0][row]), b.floor(taps[1][column])}), b.unsqueeze(weights[1][column], 1));
            line = line ? b.add(line, term) : term;
        }
        line = b.mul(line, b.unsqueeze(weights[0][row], 1));
        sum = sum ? b.add(sum, line) : line;
    }
    return sum;
}

Node *grid_sample(Builder &b, const Arguments &a) {
    Node *input = a.tensor("input");
    Node *x = b.to_compute(input);
    Node *grid = b.convert(a.tensor("grid"), dtype_of(x));
    const std::int64_t mode = a.integer("interpolation_mode", linear);
    const Sampler sampler(b, x, a.integer("padding_mode", zeros), a.flag("align_corners", false));
    const int spatial = rank_of(input) - 2;
    std::vector<Node *> places;
    for (int i = 0; i < spatial; ++i) {
        // The grid lists the last dimension first.
        Node *coordinate = b.select(grid, rank_of(grid) - 1, spatial - 1 - i);
        Node *place = sampler.place(coordinate, sizes_of(x)[i + 2]);
        places.push_back(mode == cubic ? place : sampler.kept_inside(place, sizes_of(x)[i + 2]));
    }
    Node *value = nullptr;
    if (mode == nearest) {
        for (Node *&place : places) {
            place = b.unary("round", place);
        }
        value = sampler.read(places);
    } else {
        value = mode == cubic ? sample_cubic(b, sampler, places, sizes_of(x)) : sample_linear(b, sampler, places);
    }
    return b.convert(value, dtype_of(input));
}

/// Centres (or, with aligned corners, ends) of the cells that divide -1 … 1.
Node *base_coordinates(Builder &b, const Extent &count, bool align_corners, DType type) {
    if (count == Extent(1)) {
        return b.full({1}, 0.0, type);
    }
    Node *index = b.iota(count, type);
    if (align_corners) {
        return b.sub(b.div(b.mul(index, 2.0), count - 1), 1.0);
    }
    return b.sub(b.div(b.add(b.mul(index, 2.0), 1.0), count), 1.0);
}

Node *affine_grid(Builder &b, const Arguments &a) {
    Node *theta = a.tensor("theta");  // [N, spatial, spatial + 1]
    const Extents size = a.extents("size");
    const int spatial = static_cast<int>(size.size()) - 2;
    const Extents shape(size.begin() + 2, size.end());
    Extents each = shape;
    each.emplace_back(1);
    std::vector<Node *> columns;
    for (int i = spatial - 1; i >= 0; --i) {
        Node *line = base_coordinates(b, shape[i], a.flag("align_corners", false), dtype_of(theta));
        columns.push_back(b.broadcast_in_dim(line, each, {i}));
    }
    columns.push_back(b.full(each, 1.0, dtype_of(theta)));
    Node *base = b.reshape(b.cat(columns, spatial), {product(shape), spatial + 1});
    Node *grid = b.convert(matmul(b, base, b.transpose(theta, 1, 2)), dtype_of(theta));
    Extents result = {size[0]};
    result.insert(result.end(), shape.begin(), shape.end());
    result.emplace_back(spatial);
    return b.reshape(grid, result);
}

}  // namespace

void add_grid_rules(RuleTable &table) {
    table.add({"aten.grid_sampler.default", "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default",
               "aten._grid_sampler_2d_cpu_fallback.default"},
              grid_sample);
    table.add("aten.affine_grid_generator.default", affine_grid);
}

}  // namespace tilewright
