#include "lowering/fusion/tensor_reads.h"

#include <algorithm>
#include <utility>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

TensorMeta input_meta(const TensorInput &input) {
    TensorMeta meta = input.meta;
    meta.offset = 0;  // counted from the tensor's element 0, wherever that lies in its storage
    return meta;
}

}  // namespace

StoredTensor TensorReads::tensor_of(const ReadSource &source) const {
    if (source.node < 0) {
        const TensorInput &tensor = graph_.algorithm().inputs[source.input];
        return {tensor.name(), input_meta(tensor)};
    }
    const auto found = stored_.find({source.node, source.tuple_index});
    internal_assert(found != stored_.end(), "stage {} is read by another kernel and is not stored", graph_.node(source.node).name());
    return found->second.front();
}

Halide::ImageParam TensorReads::whole(const TensorInput &tensor) { return input(tensor.name(), input_meta(tensor)); }

Expr TensorReads::view(const StoredTensor &tensor, const ReadSource &source, const StageReader &reader) {
    const StageNode &node = graph_.node(reader.node);
    const bool must_be_plain = node.form == Form::contraction;
    const bool is_window = node.form == Form::window;  // its sums of variables say which places overlap
    // Neighbours of one tensor stay neighbours; a part that is read alone is a view.
    const bool stays = reads_shifted(source.indices, reader.axes) && has_neighbours(source, reader);
    if (reads_at_variables(source.indices, reader.axes) || (stays && !must_be_plain)) {
        return Expr();
    }
    if (!is_window && !reader.is_guarded) {
        if (const auto view = fold_view(tensor.meta, source.indices, reader.axes, reader.samples)) {
            return read(input(tensor.name, view->meta), view->indices);
        }
    }
    if (node.is_map) {
        if (const auto view = split_view(tensor.meta, source.indices, reader.axes)) {
            return read(input(tensor.name, view->meta), view->indices);
        }
    }
    for (const ReadSource::Map &map : source.maps) {
        if (const Expr viewed = view_of_map(map, tensor, reader, must_be_plain); viewed.defined()) {
            return viewed;
        }
    }
    return Expr();
}

/// Whether the stage reads the tensor elsewhere too, or another of the kernel reads what overlaps with this.
bool TensorReads::has_neighbours(const ReadSource &source, const StageReader &reader) const {
    int own = 0;
    for (int index : members_) {
        const StageNode &node = graph_.node(index);
        std::vector<IndexAxis> axes = node.axes;
        axes.insert(axes.end(), node.variables.begin(), node.variables.end());
        for (const EffectiveRead &read : graph_.effective_reads(index)) {
            if (read.producer != source.node || read.input != source.input || read.tuple_index != source.tuple_index) {
                continue;
            }
            own += index == reader.node;
            if (own > 1 || (index != reader.node && overlap(source.indices, reader.axes, read.indices, axes))) {
                return true;
            }
        }
    }
    return false;
}

/// The map as a strided view of the tensor, read at the indices at which the map is read: they stay inside whatever conditions stand
/// around them, and may be read from tensors themselves.
Expr TensorReads::view_of_map(const ReadSource::Map &map, const StoredTensor &tensor, const StageReader &reader, bool must_be_plain) {
    const StageReader space = reader_of(graph_, map.node);
    const Expr value = terms_of(*graph_.node(map.node).stage)[0];
    const auto *first = value.as<hi::Call>();
    std::vector<Expr> indices;
    for (const Expr &index : first->args) {
        indices.push_back(bind_variables(index, space.renamed));
    }
    const ReadSource through = follow(graph_, first, indices, space);
    const auto view = fold_view(tensor.meta, through.indices, space.axes, space.samples);
    if (!view) {
        return Expr();
    }
    const std::vector<Expr> own = reader.simplified(map.indices);
    std::vector<Expr> at;
    for (const Expr &variable : view->indices) {
        for (std::size_t i = 0; i < space.axes.size(); ++i) {
            if (space.axes[i].name == variable.as<hi::Variable>()->name) {
                at.push_back(own[i]);
            }
        }
    }
    const bool is_plain =
        std::all_of(at.begin(), at.end(), [](const Expr &index) { return index.as<hi::Variable>() || hi::is_const(index); });
    return is_plain || !must_be_plain ? read(input(tensor.name, view->meta), at) : Expr();
}

/// The offset leaves the kernel for the call, but for what would change the alignment that every tensor has.
Halide::ImageParam TensorReads::input(const std::string &tensor, TensorMeta meta) {
    Extent call_offset = 0;
    constexpr std::int64_t alignment = 256;  // bytes
    if (const auto offset = meta.offset.constant()) {
        const std::int64_t elements = alignment / size_in_bytes(meta.dtype);
        call_offset = *offset / elements * elements;
        meta.offset = *offset % elements;
    }
    const std::string key = tensor + " " + meta.to_string() + " " + call_offset.to_string();
    const auto found = inputs_.find(key);
    if (found != inputs_.end()) {
        return kernel_.algorithm.inputs[found->second].param;
    }
    inputs_.emplace(key, kernel_.algorithm.inputs.size());
    const std::string name = "in" + std::to_string(kernel_.algorithm.inputs.size());
    kernel_.algorithm.inputs.push_back({Halide::ImageParam(to_halide(meta.dtype), meta.rank(), name), meta, name});
    kernel_.inputs.push_back(tensor);
    kernel_.input_offsets.push_back(call_offset);
    return kernel_.algorithm.inputs.back().param;
}

}  // namespace tilewright
