// Padding: a constant, or values read from the tensor itself.
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

struct Padding {
    Extents low, high;  ///< of each dimension
};

/// PyTorch lists (low, high) from the last dimension inwards.
Padding read_padding(const Arguments &a, int rank, const char *name) {
    const Extents pairs = a.extents(name);
    if (pairs.size() % 2 != 0 || pairs.size() > 2 * static_cast<std::size_t>(rank)) {
        a.refuse(fmt::format("a padding of {} numbers does not fit a tensor with {} dimensions", pairs.size(), rank));
    }
    Padding padding{Extents(rank, Extent(0)), Extents(rank, Extent(0))};
    for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
        padding.low[rank - 1 - i] = pairs[2 * i];
        padding.high[rank - 1 - i] = pairs[2 * i + 1];
    }
    return padding;
}

Number fill_value(const Arguments &a, DType type) {
    const Number value = a.number("value", Number(Extent(0)));
    if (type == DType::boolean) {
        return !is_zero(value);
    }
    if (is_floating_point(type)) {
        return to_double(value);
    }
    return Extent(static_cast<std::int64_t>(to_double(value)));
}

Node *constant_pad(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    const Padding padding = read_padding(a, rank_of(self), "pad");
    return b.pad(self, padding.low, padding.high, fill_value(a, dtype_of(self)));
}

/// Reads one dimension at the places that `mode` gives for what lies outside; a negative padding crops.
Node *pad_dimension(Builder &b, Node *self, int dim, const Extent &low, const Extent &high, const std::string &mode) {
    if (low == Extent(0) && high == Extent(0)) {
        return self;
    }
    if (mode == "circular") {
        // What is cropped is gone before the rest wraps around.
        const auto crop = [](const Extent &amount) { return amount.is_constant() && amount.value() < 0 ? Extent(0) - amount : Extent(0); };
        const Extent first = crop(low), last = crop(high);
        if (!(first == Extent(0) && last == Extent(0))) {
            return pad_dimension(b, b.slice(self, dim, first, sizes_of(self)[dim] - last), dim, low + first, high + last, mode);
        }
    }
    const Extent size = sizes_of(self)[dim];
    Node *place = b.iota(size + low + high, Extent(0) - low, 1, DType::int64);
    if (mode == "circular") {
        place = b.binary("remainder", place, size);
    } else if (mode == "replicate") {
        place = b.minimum(b.maximum(place, 0), size - 1);
    } else {  // reflect: without repeating the border
        Node *inward = b.abs(place);
        place = b.sub(size - 1, b.abs(b.sub(size - 1, inward)));
    }
    std::vector<Node *> indices(rank_of(self), nullptr);
    indices[dim] = place;
    return b.gather_nd(self, indices, false);
}

Node *pad_by_mode(Builder &b, const Arguments &a, const std::string &mode, const char *name) {
    Node *value = a.tensor("self");
    const Padding padding = read_padding(a, rank_of(value), name);
    for (int dim = 0; dim < rank_of(value); ++dim) {
        value = pad_dimension(b, value, dim, padding.low[dim], padding.high[dim], mode);
    }
    return value;
}

}  // namespace

void add_pad_rules(RuleTable &table) {
    table.add("aten.constant_pad_nd.default", constant_pad);
    table.add("aten.pad.default", [](Builder &b, const Arguments &a) {
        const std::string mode = a.text("mode", "constant");
        return mode == "constant" ? constant_pad(b, a) : pad_by_mode(b, a, mode, "pad");
    });
    table.add("aten._pad_circular.default", [](Builder &b, const Arguments &a) { return pad_by_mode(b, a, "circular", "pad"); });
    for (int spatial : {1, 2, 3}) {
        table.add(fmt::format("aten.reflection_pad{}d.default", spatial),
                  [](Builder &b, const Arguments &a) { return pad_by_mode(b, a, "reflect", "padding"); });
        table.add(fmt::format("aten.replication_pad{}d.default", spatial),
                  [](Builder &b, const Arguments &a) { return pad_by_mode(b, a, "replicate", "padding"); });
    }
}

}  // namespace tilewright
