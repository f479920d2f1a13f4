#include "lowering/fusion/storage_layout.h"

#include <algorithm>

#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace {

constexpr std::size_t largest_rank = 5;  // 120 orders at most are tried

/// Reads of one value, each with the space of its reader.
struct ReadInSpace {
    const EffectiveRead *read;
    std::vector<IndexAxis> axes;
    SamplePoints samples;
};

std::vector<ReadInSpace> awkward_reads(const StageGraph &graph, int node, int element) {
    std::vector<ReadInSpace> reads;
    std::vector<int> pending = graph.node(node).readers, seen;
    while (!pending.empty()) {
        const int reader = pending.back();
        pending.pop_back();
        if (std::find(seen.begin(), seen.end(), reader) != seen.end()) {
            continue;
        }
        seen.push_back(reader);
        const StageNode &stage = graph.node(reader);
        if (stage.is_virtual) {
            pending.insert(pending.end(), stage.readers.begin(), stage.readers.end());
        }
        // Windows, concatenations and pads fold single maps, whatever the layout.
        if ((stage.is_virtual && !stage.is_output) || stage.form == Form::window || (stage.is_view && !stage.is_map)) {
            continue;
        }
        std::vector<IndexAxis> axes = stage.axes;
        axes.insert(axes.end(), stage.variables.begin(), stage.variables.end());
        for (const EffectiveRead &read : graph.effective_reads(reader)) {
            if (read.producer == node && read.tuple_index == element && !reads_shifted(read.indices, axes)) {
                reads.push_back({&read, axes, SamplePoints(axes, graph.algorithm().symbols)});
            }
        }
    }
    return reads;
}

constexpr std::int64_t copy_alignment = 16;  // bytes

/// What the dimensions from `aligned` on hold together takes a multiple of what the copy unit moves.
TensorMeta permuted(DType dtype, const std::vector<Extent> &sizes, const std::vector<std::size_t> &outermost_first,
                    std::size_t aligned = 0) {
    const Extent unit = std::max<std::int64_t>(copy_alignment / static_cast<std::int64_t>(size_in_bytes(dtype)), 1);
    TensorMeta meta = TensorMeta::contiguous(dtype, sizes);
    Extent stride = 1;
    for (std::size_t i = outermost_first.size(); i-- > 0;) {
        if (i + 1 == aligned) {
            stride = ceil_div(stride, unit) * unit;
        }
        meta.strides[outermost_first[i]] = stride;
        stride = stride * sizes[outermost_first[i]];
    }
    return meta;
}

bool serves(const TensorMeta &meta, const std::vector<ReadInSpace> &reads) {
    return std::all_of(reads.begin(), reads.end(),
                       [&](const ReadInSpace &one) { return fold_view(meta, one.read->indices, one.axes, one.samples).has_value(); });
}

/// Whether a product over the same space makes the value, perhaps with pointwise stages after it.
bool is_made_by_product(const StageGraph &graph, int node) {
    const std::vector<Extent> &space = graph.node(node).stage->extents;
    std::vector<int> pending{node}, seen{node};
    while (!pending.empty()) {
        const StageNode &stage = graph.node(pending.back());
        pending.pop_back();
        if (stage.form == Form::contraction) {
            return true;
        }
        for (int producer : stage.form == Form::pointwise ? stage.producers : std::vector<int>()) {
            if (graph.node(producer).stage->extents == space && std::find(seen.begin(), seen.end(), producer) == seen.end()) {
                seen.push_back(producer);
                pending.push_back(producer);
            }
        }
    }
    return false;
}

/// Whether a product reads the value, perhaps through maps.
bool is_multiplied(const StageGraph &graph, int node) {
    std::vector<int> pending = graph.node(node).readers;
    for (std::size_t i = 0; i < pending.size(); ++i) {
        const StageNode &reader = graph.node(pending[i]);
        if (reader.form == Form::contraction) {
            return true;
        }
        for (int next : reader.is_virtual && !reader.is_output ? reader.readers : std::vector<int>()) {
            if (std::find(pending.begin(), pending.end(), next) == pending.end()) {
                pending.push_back(next);
            }
        }
    }
    return false;
}

/// Rows of a product's result and of its operands begin where the copy unit and wide accesses can: long ones at a multiple of 128 bytes,
/// others of 16.
TensorMeta padded(const TensorMeta &plain) {
    const Extent width = plain.sizes.back();
    if (!width.is_constant() || width.value() * size_in_bytes(plain.dtype) < 64) {
        return plain;
    }
    const std::int64_t bytes = width.value() * size_in_bytes(plain.dtype);
    if (bytes % 16 == 0) {
        return plain;
    }
    const std::int64_t unit = (bytes >= 2048 ? 128 : 16) / size_in_bytes(plain.dtype), row = (width.value() + unit - 1) / unit * unit;
    TensorMeta meta = plain;
    Extent stride = row;
    for (std::size_t i = meta.sizes.size() - 1; i-- > 0;) {
        meta.strides[i] = stride;
        stride = stride * meta.sizes[i];
    }
    return meta;
}

}  // namespace

TensorMeta storage_layout(const StageGraph &graph, const ChannelLayout *channels, int node, int element) {
    const StageNode &stage = graph.node(node);
    const DType dtype = from_halide(stage.stage->func.types()[element]);
    const std::vector<Extent> &sizes = stage.stage->extents;
    if (const auto innermost = channels ? channels->innermost_of_node(node) : std::vector<int>(); !innermost.empty()) {
        return with_innermost(dtype, sizes, innermost);
    }
    const TensorMeta plain = TensorMeta::contiguous(dtype, sizes);
    if (sizes.size() < 2 || sizes.size() > largest_rank) {
        return plain;
    }
    const std::vector<ReadInSpace> reads = awkward_reads(graph, node, element);
    if (is_made_by_product(graph, node) || (size_in_bytes(dtype) == 2 && is_multiplied(graph, node))) {
        const TensorMeta rows = padded(plain);
        if (serves(rows, reads)) {
            return rows;
        }
    }
    if (reads.empty() || serves(plain, reads)) {
        return plain;
    }
    // Orders that keep the innermost dimension come first.
    for (const bool keeps_innermost : {true, false}) {
        std::vector<std::size_t> order(sizes.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        do {
            if ((order.back() == sizes.size() - 1) != keeps_innermost) {
                continue;
            }
            const TensorMeta meta = permuted(dtype, sizes, order);
            if (serves(meta, reads)) {
                return meta;
            }
        } while (std::next_permutation(order.begin(), order.end()));
    }
    return plain;
}

bool lies_innermost(const TensorMeta &meta, int dimension) {
    const Extent unit = std::max<std::int64_t>(copy_alignment / static_cast<std::int64_t>(size_in_bytes(meta.dtype)), 1);
    bool lies = meta.strides[dimension] == Extent(1);
    for (int i = 0; i < meta.rank(); ++i) {
        lies = lies && (i == dimension || meta.sizes[i] == Extent(1) || mod(meta.strides[i], unit) == Extent(0));
    }
    return lies;
}

TensorMeta with_innermost(DType dtype, const std::vector<Extent> &sizes, const std::vector<int> &innermost) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (std::find(innermost.begin(), innermost.end(), static_cast<int>(i)) == innermost.end()) {
            order.push_back(i);
        }
    }
    const std::size_t outer = order.size();
    order.insert(order.end(), innermost.begin(), innermost.end());
    return permuted(dtype, sizes, order, outer);
}

}  // namespace tilewright
