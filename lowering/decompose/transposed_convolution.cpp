#include "lowering/decompose/transposed_convolution.h"

#include <algorithm>
#include <numeric>

namespace tilewright {
namespace {

/// One remainder of the places along an axis: taps first, first + step, … of the kernel, `count` of them, meet inputs `dilation` apart, the
/// last of them `shift` before the first input of the row.
struct Phase {
    std::int64_t first = 0, step = 1, count = 0, dilation = 1, shift = 0;
};

/// A spatial axis. Row q of each phase is output stride * q + phase, before padding is cut off; rows [low, low + rows) are computed.
struct Axis {
    std::int64_t stride = 1, kernel = 1, padding = 0, low = 0;
    std::int64_t beyond = 0;  ///< last row computed + 1, minus the input's extent
    Extent input, output;
    std::vector<Phase> phases;

    Extent rows() const { return input + Extent(beyond - low); }
    std::int64_t pad_low(const Phase &phase) const { return phase.dilation * (phase.count - 1) + phase.shift - low; }
    std::int64_t pad_high(const Phase &phase) const { return beyond - phase.shift; }
    bool interleaves_evenly() const {
        return std::all_of(phases.begin(), phases.end(), [&](const Phase &phase) {
            return phase.count == phases[0].count && phase.shift == 0 && phase.first == &phase - phases.data();
        });
    }
};

/// The taps k with k * dilation = phase (mod stride) are an arithmetic sequence; there are none where gcd(stride, dilation) does not divide
/// phase.
Phase phase_taps(std::int64_t phase, std::int64_t stride, std::int64_t dilation, std::int64_t kernel) {
    const std::int64_t common = std::gcd(stride, dilation);
    Phase result;
    result.step = stride / common;
    result.dilation = dilation / common;
    for (std::int64_t k = 0; k < std::min(result.step, kernel); ++k) {
        if ((k * dilation - phase) % stride == 0) {
            result.first = k;
            result.count = ceil_div(kernel - k, result.step).value();
            result.shift = (k * dilation - phase) / stride;
        }
    }
    return result;
}

Axis make_axis(const Extent &input, std::int64_t kernel, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
               std::int64_t output_padding) {
    Axis axis;
    axis.stride = stride;
    axis.kernel = kernel;
    axis.padding = padding;
    axis.low = padding / stride;
    const std::int64_t more = dilation * (kernel - 1) + output_padding + 1 - stride;  // of the outputs than stride * input
    axis.beyond = ceil_div(more - padding, stride).value();
    axis.input = input;
    axis.output = input * stride + Extent(more - 2 * padding);
    for (std::int64_t phase = 0; phase < stride; ++phase) {
        axis.phases.push_back(phase_taps(phase, stride, dilation, kernel));
    }
    return axis;
}

std::vector<Axis> make_axes(const Node *input, const Node *weight, const Builder::Convolution &how, const Extents &output_padding) {
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < how.stride.size(); ++i) {
        axes.push_back(make_axis(sizes_of(input)[i + 2], sizes_of(weight)[i + 2].value(), how.stride[i].value(), how.padding[i].value(),
                                 how.dilation[i].value(), output_padding[i].value()));
    }
    return axes;
}

struct Transposed {
    Builder &b;
    Node *input, *weight, *bias;
    std::vector<Axis> axes;
    std::int64_t groups;
    DType accumulator;
    const FinishConvolution &finish;
};

/// Rows [low, low + rows) of one phase each: a convolution of stride 1, whose padding is as wide on both sides.
Node *convolve_phases(const Transposed &t, Node *weight, Node *bias, const std::vector<Phase> &phases) {
    auto &[b, input, whole_weight, whole_bias, axes, groups, accumulator, finish] = t;
    Builder::Convolution how;
    how.groups = groups;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        how.stride.push_back(1);
        how.dilation.push_back(phases[i].dilation);
        how.padding.push_back(std::max<std::int64_t>({axes[i].pad_low(phases[i]), axes[i].pad_high(phases[i]), 0}));
    }
    Node *value = finish(b.convolution(input, weight, how, accumulator), bias);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Extent start = how.padding[i] - Extent(axes[i].pad_low(phases[i]));
        value = b.slice(value, static_cast<int>(i) + 2, start, start + axes[i].rows());
    }
    return value;
}

/// [C, O/groups, taps…] -> [O, C/groups, taps…], taps in reverse.
Node *turn_weight(Builder &b, Node *weight, std::int64_t groups) {
    const Extents size = sizes_of(weight);
    const int spatial = rank_of(weight) - 2;
    Extents grouped = {groups, floor_div(size[0], groups)};
    grouped.insert(grouped.end(), size.begin() + 1, size.end());
    Dims order = all_dims(rank_of(weight) + 1);
    std::swap(order[1], order[2]);
    Extents turned = {size[1] * groups, floor_div(size[0], groups)};
    turned.insert(turned.end(), size.begin() + 2, size.end());
    Dims taps(spatial);
    std::iota(taps.begin(), taps.end(), 2);
    return b.flip(b.reshape(b.permute(b.reshape(weight, grouped), order), turned), taps);
}

/// All phases side by side as output channels (group, phase of each axis, channel), where each has the same number of taps: [N, O, rows,
/// phases, …].
Node *evenly_interleaved(const Transposed &t) {
    auto &[b, input, weight, bias, axes, groups, accumulator, finish] = t;
    const Extents size = sizes_of(weight);
    const int spatial = static_cast<int>(axes.size());
    Extents split = {size[0], size[1]};
    Dims order = {0};
    Extents channels = {size[0], size[1]};
    std::int64_t phases = 1;
    std::vector<Phase> first;
    for (int i = 0; i < spatial; ++i) {
        const Axis &axis = axes[i];
        split.push_back(axis.phases[0].count);
        split.push_back(axis.stride);
        order.push_back(2 + 2 * i + 1);
        phases *= axis.stride;
        channels.push_back(axis.phases[0].count);
        first.push_back(axis.phases[0]);
    }
    channels[1] = size[1] * phases;
    order.push_back(1);
    for (int i = 0; i < spatial; ++i) {
        order.push_back(2 + 2 * i);
    }
    Node *side_by_side = b.reshape(b.permute(b.reshape(weight, split), order), channels);
    Node *repeated = bias ? b.flatten(b.broadcast(b.reshape(bias, {groups, 1, size[1]}), {groups, phases, size[1]})) : nullptr;
    Node *value = convolve_phases(t, turn_weight(b, side_by_side, groups), repeated, first);

    // [N, (group, phases…, channel), rows…] -> [N, group, channel, rows, phase, …]
    Extents apart = {sizes_of(value)[0], groups};
    Dims interleave = {0, 1, 2 + spatial};
    for (int i = 0; i < spatial; ++i) {
        apart.push_back(axes[i].stride);
        interleave.push_back(3 + spatial + i);
        interleave.push_back(2 + i);
    }
    apart.push_back(size[1]);
    for (const Axis &axis : axes) {
        apart.push_back(axis.rows());
    }
    return b.permute(b.reshape(value, apart), interleave);
}

/// One convolution for each phase, those of an axis from `i` on beside one another: [N, O, rows, phases, …].
Node *phase_by_phase(const Transposed &t, std::vector<Phase> chosen = {}) {
    auto &[b, input, weight, bias, axes, groups, accumulator, finish] = t;
    const std::size_t i = chosen.size();
    if (i == axes.size()) {
        Extents rows = {sizes_of(input)[0], sizes_of(weight)[1] * groups};
        Extents apart = rows;
        Node *taps = weight;
        for (std::size_t j = 0; j < axes.size(); ++j) {
            rows.push_back(axes[j].rows());
            apart.push_back(axes[j].rows());
            apart.push_back(1);
            taps = b.slice(taps, static_cast<int>(j) + 2, std::min(chosen[j].first, axes[j].kernel), axes[j].kernel, chosen[j].step);
        }
        const bool none = std::any_of(chosen.begin(), chosen.end(), [](const Phase &phase) { return phase.count == 0; });
        return b.reshape(
            none ? finish(b.full(rows, Extent(0), accumulator), bias) : convolve_phases(t, turn_weight(b, taps, groups), bias, chosen),
            apart);
    }
    std::vector<Node *> beside;
    for (const Phase &phase : axes[i].phases) {
        chosen.push_back(phase);
        beside.push_back(phase_by_phase(t, chosen));
        chosen.pop_back();
    }
    return b.cat(beside, 3 + 2 * static_cast<int>(i));
}

}  // namespace

Node *transposed_convolution(Builder &b, Node *input, Node *weight, Node *bias, const Builder::Convolution &how,
                             const Extents &output_padding, DType accumulator, const FinishConvolution &finish) {
    const Transposed t{b, input, weight, bias, make_axes(input, weight, how, output_padding), how.groups, accumulator, finish};
    const std::vector<Axis> &axes = t.axes;
    const bool even = std::all_of(axes.begin(), axes.end(), [](const Axis &axis) { return axis.interleaves_evenly(); });
    Node *value = even ? evenly_interleaved(t) : phase_by_phase(t);
    Extents merged = {sizes_of(input)[0], sizes_of(weight)[1] * how.groups};
    for (const Axis &axis : axes) {
        merged.push_back(axis.rows() * axis.stride);
    }
    value = b.reshape(value, merged);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Extent start = axes[i].padding - axes[i].low * axes[i].stride;
        value = b.slice(value, static_cast<int>(i) + 2, start, start + axes[i].output);
    }
    return value;
}

}  // namespace tilewright
