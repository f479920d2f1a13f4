// Sorting along a dimension: the rows are brought to the last dimension, sorted there, and read back.
#include <algorithm>

#include "dsl/algorithm/sort.h"
#include "lowering/translate/constants.h"
#include "lowering/translate/context.h"
#include "lowering/translate/families.h"

namespace tilewright::translation {

using Halide::Expr;

namespace {

template<typename T> std::vector<T> moved_to_end(std::vector<T> list, std::size_t dim) {
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(dim), list.begin() + static_cast<std::ptrdiff_t>(dim) + 1, list.end());
    return list;
}

template<typename T> std::vector<T> moved_from_end(std::vector<T> list, std::size_t dim) {
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(dim), list.end() - 1, list.end());
    return list;
}

void sort(TranslationContext &context, const Node &node) {
    TensorValue a = context.operand(node, "a");
    if (a.rank() == 0) {
        context.define_results(node, {a.element(), constant(Halide::Int(64), std::int64_t{0})});
        return;
    }
    auto dim = static_cast<std::size_t>(TranslationContext::integer(node, "dim"));
    bool descending = TranslationContext::flag(node, "descending");
    std::vector<Halide::Var> arguments = argument_vars(a.rank());
    Indices at(arguments.begin(), arguments.end());

    Halide::Func rows = context.make_func(node, "rows");
    rows(arguments) = a(moved_from_end(at, dim));
    std::vector<Extent> sizes = moved_to_end(a.meta().sizes, dim);
    context.add_stage(node, rows, sizes);

    Halide::Func sorted = context.make_func(node);
    define_sort(sorted, arguments, rows, a.extent(static_cast<int>(dim)), descending);
    sizes.back() = TranslationContext::extent(node, "count");
    context.add_stage(node, sorted, sizes);
    Indices back = moved_to_end(at, dim);
    context.define_results(node, {call(sorted, back, 0), call(sorted, back, 1)});
}

}  // namespace

void add_sort(Table &table) { table["tw.sort"] = sort; }

}  // namespace tilewright::translation
