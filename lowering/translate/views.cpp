// Views that are pure index maps.
#include "dsl/error.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"
#include "lowering/translate/reshape_map.h"

namespace tilewright::translation {

using Halide::Expr;

namespace {

void broadcast_in_dim(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    std::vector<int> dims = TranslationContext::integers(node, "dims");
    Indices at = TranslationContext::indices(node), map;
    for (int i = 0; i < a.rank(); i++) {
        map.push_back(a.size(i) == Extent(1) ? Expr(0) : at.at(static_cast<std::size_t>(dims.at(static_cast<std::size_t>(i)))));
    }
    context.define_view(node, a, map);
}

void reshape(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    context.define_view(node, a,
                        reshape_map(a.meta().sizes, TranslationContext::result_meta(node).sizes, TranslationContext::indices(node)));
}

void permute(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    std::vector<int> dims = TranslationContext::integers(node, "dims");
    Indices at = TranslationContext::indices(node), map(at.size());
    for (std::size_t i = 0; i < dims.size(); i++) {
        map.at(static_cast<std::size_t>(dims[i])) = at[i];
    }
    context.define_view(node, a, map);
}

void slice(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    auto dim = static_cast<std::size_t>(TranslationContext::integer(node, "dim"));
    Indices map = TranslationContext::indices(node);
    map.at(dim) = map[dim] * to_halide(TranslationContext::extent(node, "step")) + to_halide(TranslationContext::extent(node, "start"));
    context.define_view(node, a, map);
}

void flip(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    Indices map = TranslationContext::indices(node);
    for (int dim : TranslationContext::integers(node, "dims")) {
        Expr &index = map.at(static_cast<std::size_t>(dim));
        index = a.extent(dim) - 1 - index;
    }
    context.define_view(node, a, map);
}

void as_strided(TranslationContext &context, const Node &node) {
    TensorValue a = context.view_operand(node, "a");
    std::vector<Extent> strides = TranslationContext::extents(node, "stride");
    Indices at = TranslationContext::indices(node);
    Expr linear = to_halide(TranslationContext::extent(node, "offset"));
    for (std::size_t i = 0; i < at.size(); i++) {
        linear = linear + at[i] * to_halide(strides.at(i));
    }
    context.define_view(node, a, delinearise(linear, a.meta().sizes));
}

}  // namespace

void add_views(Table &table) {
    table["prims.broadcast_in_dim"] = broadcast_in_dim;
    table["prims.reshape"] = reshape;
    table["prims.permute"] = permute;
    table["prims.slice"] = slice;
    table["prims.flip"] = flip;
    table["prims.as_strided"] = as_strided;
}

}  // namespace tilewright::translation
