// Rows of tables, alone and in bags.
#include <limits>

#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

Node *rows_at(Builder &b, Node *weight, Node *indices) {
    std::vector<Node *> places(rank_of(weight), nullptr);
    places[0] = b.convert(indices, DType::int64);
    return b.gather_nd(weight, places, false);
}

enum BagMode : std::int64_t { sum = 0, mean = 1, max = 2 };

/// How many rows each bag has, where the offsets step evenly over all of `count`.
std::optional<Extent> even_bag(const Node *offsets, const Extent &bags, const Extent &count) {
    if (offsets->target != "prims.iota" || !(*offsets->find("start")->get_if<Extent>() == Extent(0))) {
        return std::nullopt;
    }
    const Extent step = *offsets->find("step")->get_if<Extent>();
    return step * bags == count ? std::optional(step) : std::nullopt;
}

/// Each row of the table that `indices` names goes to the bag whose offset is the last at or before its place.
Results embedding_bag(Builder &b, const Arguments &a) {
    Node *weight = a.tensor("weight");
    Node *indices = b.convert(a.tensor("indices"), DType::int64);
    Node *offsets = b.convert(a.tensor("offsets"), DType::int64);
    const std::int64_t mode = a.integer("mode", 0);
    const DType type = dtype_of(weight);
    Extent bags = sizes_of(offsets)[0];
    if (a.flag("include_last_offset", false)) {
        bags = bags - 1;
        offsets = b.slice(offsets, 0, 0, bags);
    }
    const Extent count = sizes_of(indices)[0];
    const Extent width = sizes_of(weight)[1];
    Node *rows = b.to_compute(rows_at(b, weight, indices));
    if (Node *scale = a.optional_tensor("per_sample_weights")) {
        rows = b.mul(rows, b.unsqueeze(b.convert(scale, dtype_of(rows)), 1));
    }
    Node *counted = nullptr;
    const std::int64_t padding = a.integer("padding_idx", -1);
    if (padding >= 0) {
        counted = b.ne(indices, padding);
    } else if (a.has("padding_idx") && a.target() == "aten.embedding_bag.padding_idx") {
        counted = b.ne(indices, sizes_of(weight)[0] + padding);
    }
    const double infinity = std::numeric_limits<double>::infinity();
    if (counted) {
        rows = b.where(b.unsqueeze(counted, 1), rows, mode == max ? -infinity : 0.0);
    }
    if (const auto rows_each = even_bag(offsets, bags, count)) {
        Node *each = b.reshape(rows, {bags, *rows_each, width});
        Node *value = mode == max ? b.amax(each, {1}) : b.sum(each, {1});
        if (counted) {
            Node *own = b.reshape(counted, {bags, *rows_each});
            Node *size = b.unsqueeze(b.sum(b.convert(own, dtype_of(rows)), {1}), 1);
            value = mode == max ? b.where(b.gt(size, 0.0), value, 0.0) : mode == mean ? b.div(value, b.maximum(size, 1.0)) : value;
        } else if (mode == mean) {
            value = b.mean(each, {1});
        }
        return {b.convert(value, type), nullptr, nullptr, nullptr};
    }
    Node *place = b.unsqueeze(b.iota(count), 1);
    Node *bag = b.sub(b.sum(b.convert(b.ge(place, offsets), DType::int64), {1}), 1);
    Node *ones = counted ? b.convert(counted, dtype_of(rows)) : b.full({count}, 1.0, dtype_of(rows));
    Node *sizes = b.unsqueeze(b.index_put(b.full({bags}, 0.0, dtype_of(rows)), {bag}, ones, true, false), 1);
    Node *out = nullptr;
    if (mode == max) {
        Node *start = b.full({bags, width}, -infinity, dtype_of(rows));
        Node *largest = b.scatter(start, 0, b.broadcast(b.unsqueeze(bag, 1), sizes_of(rows)), rows, "amax");
        out = b.where(b.gt(sizes, 0.0), largest, 0.0);
    } else {
        out = b.index_put(b.full({bags, width}, 0.0, dtype_of(rows)), {bag, nullptr}, rows, true, false);
        out = mode == mean ? b.div(out, b.maximum(sizes, 1.0)) : out;
    }
    return {b.convert(out, type), nullptr, nullptr, nullptr};
}

}  // namespace

void add_embedding_rules(RuleTable &table) {
    table.add("aten.embedding.default", [](Builder &b, const Arguments &a) { return rows_at(b, a.tensor("weight"), a.tensor("indices")); });
    table.add({"aten.embedding_bag.default", "aten.embedding_bag.padding_idx", "aten._embedding_bag.default",
               "aten._embedding_bag_forward_only.default"},
              embedding_bag);
}

}  // namespace tilewright
