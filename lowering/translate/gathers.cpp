// Gathers: reads at places that are themselves read from tensors.
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/families.h"
#include "lowering/translate/index_list.h"

namespace tilewright::translation {

using Halide::Expr;

IndexList::IndexList(TranslationContext &context, const Node &node, const TensorMeta &indexed, std::string_view tensor)
    : context_(context), node_(node), tensor_(tensor), indices_(context.optional_operands(node, "indices")), sizes_(indexed.sizes) {
    internal_assert(indices_.size() == sizes_.size(), "{} ({}): {} indices for {} dimensions", node.name, node.target, indices_.size(),
                    sizes_.size());
    int first = -1, last = -1, count = 0;
    for (std::size_t dim = 0; dim < indices_.size(); dim++) {
        if (!indices_[dim]) {
            continue;
        }
        first = first < 0 ? static_cast<int>(dim) : first;
        last = static_cast<int>(dim);
        count++;
        shape_ = indices_[dim]->meta().sizes;
    }
    internal_assert(count > 0, "{} ({}): no index", node.name, node.target);
    position_ = last - first + 1 == count ? first : 0;
}

std::string IndexList::site(int dim) const { return fmt::format("index into dimension {} of {}", dim, tensor_); }

Expr IndexList::place(int dim, const Indices &at, bool wrap) const {
    auto i = static_cast<std::size_t>(dim);
    return context_.place(node_, (*indices_[i])(at), sizes_[i], wrap, site(dim));
}

Expr IndexList::checked_place(int dim, const Indices &at, bool wrap) const {
    auto i = static_cast<std::size_t>(dim);
    return context_.checked_place(node_, (*indices_[i])(at), sizes_[i], wrap, site(dim));
}

namespace {

/// An element of a tensor that may be known to be empty: then there is none to read, and the index has raised the error already.
Expr read_or_zero(const TensorValue &a, const Indices &at, const Expr &checked, int dim) {
    return a.size(dim) == Extent(0) ? math::convert(a.type(), checked) : a(at);
}

void gather_nd(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a");
    IndexList list(context, node, a.meta(), context.tensor_name(*node.input("a")));
    bool wrap = TranslationContext::flag(node, "wrap");
    context.define_pointwise(node, [&](const Indices &at) {
        auto begin = at.begin() + list.position(), end = begin + static_cast<std::ptrdiff_t>(list.shape().size());
        Indices index_at(begin, end), others(at.begin(), begin), place;
        others.insert(others.end(), end, at.end());
        std::size_t next = 0;
        Expr empty;
        for (int dim = 0; dim < a.rank(); dim++) {
            place.push_back(list.is_indexed(dim) ? list.place(dim, index_at, wrap) : others.at(next++));
            if (a.size(dim) == Extent(0)) {
                empty = place.back();
            }
        }
        return empty.defined() ? math::convert(a.type(), empty) : a(place);
    });
}

void gather(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a"), index = context.operand(node, "index");
    int dim = TranslationContext::integer(node, "dim");
    context.define_pointwise(node, [&](const Indices &at) {
        Indices place = at;
        Expr checked = context.place(node, index(at), a.size(dim), false,
                                     fmt::format("index into dimension {} of {}", dim, context.tensor_name(*node.input("a"))));
        place.at(static_cast<std::size_t>(dim)) = checked;
        return read_or_zero(a, place, checked, dim);
    });
}

}  // namespace

void add_gathers(Table &table) {
    table["tw.gather_nd"] = gather_nd;
    table["tw.gather"] = gather;
}

}  // namespace tilewright::translation
