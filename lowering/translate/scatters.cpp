// Scatters: updates at places that are read from tensors.
#include <algorithm>

#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/contractions.h"
#include "lowering/translate/families.h"
#include "lowering/translate/index_list.h"

namespace tilewright::translation {

using Halide::Expr;

namespace {

Combiner reduce_combiner(const Node &node, const std::string &reduce) {
    if (reduce.empty()) {
        return Combiner::last;
    }
    if (reduce == "add" || reduce == "sum") {
        return Combiner::sum;
    }
    if (reduce == "prod" || reduce == "multiply") {
        return Combiner::product;
    }
    if (reduce == "amin") {
        return Combiner::minimum;
    }
    if (reduce == "amax") {
        return Combiner::maximum;
    }
    user_error("node {} ({}): no reduction is called \"{}\"; use add, prod, amin, amax or none", node.name, node.target, reduce);
}

/// Variables of an update's domain: the last dimension runs fastest, so that of several writes to one place the last in row-major order
/// stays. Halide's first reduction variable is the innermost.
struct UpdateDomain {
    Halide::RDom domain;
    std::vector<Extent> extents;
    Indices variables;  ///< by dimension

    explicit UpdateDomain(const std::vector<Extent> &sizes) {
        extents.assign(sizes.rbegin(), sizes.rend());
        if (extents.empty()) {
            extents.push_back(1);
        }
        std::vector<Expr> halide_extents;
        for (const Extent &extent : extents) {
            halide_extents.push_back(to_halide(extent));
        }
        domain = reduction_domain(halide_extents);
        for (std::size_t i = sizes.size(); i-- > 0;) {
            variables.push_back(Expr(domain[static_cast<int>(i)]));
        }
    }
};

/// f = a, then f(place) = combine(f(place), term) over the domain. Half types accumulate in float32 and are rounded once.
void define_scatter(TranslationContext &context, const Node &node, const TensorValue &a, Combiner combiner, const UpdateDomain &update,
                    const Indices &place, const Expr &term) {
    Halide::Type type = a.type(), wide = combiner == Combiner::last ? type : accumulation_type(type);
    wide = type == Halide::Int(8) ? type : wide;  // integers wrap in their own width
    Halide::Func func = context.make_func(node, wide == type ? "" : "sums");
    func(argument_vars(a.rank())) = math::convert(wide, a.element());
    std::vector<Expr> values = combine(combiner, {call(func, place)}, {math::convert(wide, term)});
    func.function().define_update(place, values, update.domain.domain());
    context.add_stage(node, func, a.meta().sizes, update.extents);
    context.define_results(node, {math::convert(type, call(func, TranslationContext::indices(node)))});
}

void scatter(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a"), index = context.operand(node, "index"), source = context.operand(node, "src");
    auto dim = static_cast<std::size_t>(TranslationContext::integer(node, "dim"));
    Combiner combiner = reduce_combiner(node, TranslationContext::text(node, "reduce"));
    // Along a dimension that the index covers whole, writes never meet: it stays an argument, which may run in parallel.
    std::vector<Extent> looped;
    std::vector<bool> is_looped;
    for (std::size_t i = 0; i < a.meta().sizes.size(); i++) {
        is_looped.push_back(i == dim || a.meta().sizes[i] != index.meta().sizes[i]);
        if (is_looped.back()) {
            looped.push_back(index.meta().sizes[i]);
        }
    }
    UpdateDomain update(looped);
    Indices from = TranslationContext::indices(node);
    std::size_t next = 0;
    for (std::size_t i = 0; i < from.size(); i++) {
        if (is_looped[i]) {
            from[i] = update.variables[next++];
        }
    }
    Indices place = from;
    place.at(dim) = context.checked_place(node, index(from), a.meta().sizes[dim], false,
                                          fmt::format("index into dimension {} of {}", dim, context.tensor_name(*node.input("a"))));
    define_scatter(context, node, a, combiner, update, place, source(from));
}

void index_put(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a"), values = context.operand(node, "values");
    IndexList list(context, node, a.meta(), context.tensor_name(*node.input("a")));
    const Argument *wrap = node.find("wrap");
    bool wraps = !wrap || !wrap->get_if<bool>() || *wrap->get_if<bool>();
    UpdateDomain update(list.shape());
    Indices arguments = TranslationContext::indices(node), place, from;
    for (int dim = 0; dim < a.rank(); dim++) {
        if (list.is_indexed(dim)) {
            place.push_back(list.checked_place(dim, update.variables, wraps));
        } else {
            place.push_back(arguments[static_cast<std::size_t>(dim)]);
            from.push_back(arguments[static_cast<std::size_t>(dim)]);
        }
    }
    from.insert(from.begin() + list.position(), update.variables.begin(), update.variables.end());
    Combiner combiner = TranslationContext::flag(node, "accumulate") ? Combiner::sum : Combiner::last;
    define_scatter(context, node, a, combiner, update, place, values(from));
}

}  // namespace

void add_scatters(Table &table) {
    table["tw.scatter"] = scatter;
    table["tw.index_put"] = index_put;
}

}  // namespace tilewright::translation
