// Products in which every row has a matrix of its own, chosen from a table: experts, adapters.
#include <algorithm>

#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Larger tables are cheaper to read row by row than to multiply all rows with.
constexpr std::int64_t largest_table = 128;

/// matrices[i] = table[index[i]]
struct Chosen {
    Node *table, *index;
    bool wrap;
};

std::optional<Chosen> chosen_matrices(Builder &b, Node *matrices) {
    if (rank_of(matrices) != 3) {
        return std::nullopt;
    }
    if (is_transposed(matrices)) {
        auto inner = chosen_matrices(b, matrices->input("a"));
        if (inner) {
            inner->table = b.transpose(inner->table, 1, 2);
        }
        return inner;
    }
    if (matrices->target != "tw.gather_nd" || rank_of(matrices->input("a")) != 3) {
        return std::nullopt;
    }
    const ArgumentList &indices = *matrices->find("indices")->get_if<ArgumentList>();
    Node *index = indices.front().node();
    const bool one = std::all_of(indices.begin() + 1, indices.end(), [](const Argument &other) { return other.node() == nullptr; });
    if (!index || !one || rank_of(index) != 1) {
        return std::nullopt;
    }
    const Argument *wrap = matrices->find("wrap");
    return Chosen{matrices->input("a"), index, !wrap || !wrap->get_if<bool>() || *wrap->get_if<bool>()};
}

/// rows[i] times table[index[i]], of all rows with all matrices of the table: these are read once, not once a row.
Node *rows_with_table(Builder &b, Node *rows, const Chosen &chosen) {
    const Extent matrices = sizes_of(chosen.table)[0], count = sizes_of(rows)[0];
    const DType accumulator = accumulator_type(dtype_of(rows));
    Node *all = b.dot(b.broadcast(b.unsqueeze(rows, 0), {matrices, count, sizes_of(rows)[1]}), chosen.table, accumulator);
    return b.convert(b.gather_nd(b.convert(all, dtype_of(rows)), {chosen.index, b.iota(count), nullptr}, chosen.wrap), accumulator);
}

/// Which part of [0, count) each place lies in, parts ending before `ends`; as many as there are parts for places past the last.
Node *parts(Builder &b, const Extent &count, Node *ends) {
    Node *place = b.unsqueeze(b.iota(count), 1);
    return b.sum(b.convert(b.ge(place, b.convert(ends, DType::int64)), DType::int64), {1});
}

/// Row i of `rows` times the matrix of the part that i lies in; 0 past the last part.
Node *rows_in_parts(Builder &b, Node *rows, Node *table, Node *ends) {
    const Extent count = sizes_of(rows)[0], matrices = sizes_of(table)[0];
    Node *part = parts(b, count, ends);
    Node *own = b.gather_nd(table, {b.minimum(part, b.full({}, matrices - 1, DType::int64)), nullptr, nullptr}, false);
    Node *product = b.squeeze(matmul(b, b.unsqueeze(rows, 1), own), {1});
    return b.where(b.unsqueeze(b.lt(part, matrices), 1), product, 0.0);
}

Node *grouped_product(Builder &b, const Arguments &a, Node *x, Node *y, Node *bias) {
    Node *ends = a.optional_tensor("offs");
    Node *value = nullptr;
    if (rank_of(x) == 3 && rank_of(y) == 3) {
        value = matmul(b, x, y);
    } else if (!ends) {
        a.refuse("a product of groups needs offs where an operand has two dimensions");
    } else if (rank_of(x) == 2 && rank_of(y) == 3) {
        value = rows_in_parts(b, x, y, ends);
    } else if (rank_of(x) == 3) {
        value = b.transpose(rows_in_parts(b, b.transpose(y, 0, 1), b.transpose(x, 1, 2), ends), 0, 1);
    } else {
        // Each part of the summed dimension gives a matrix.
        const Extent count = sizes_of(ends)[0], inner = sizes_of(x)[1];
        Node *is_own = b.eq(b.unsqueeze(parts(b, inner, ends), 0), b.unsqueeze(b.iota(count), 1));
        Node *own = b.where(b.unsqueeze(is_own, 1), b.broadcast(b.unsqueeze(x, 0), {count, sizes_of(x)[0], inner}), 0.0);
        value = matmul(b, own, b.broadcast(b.unsqueeze(y, 0), {count, inner, sizes_of(y)[1]}));
    }
    if (bias) {
        value = b.add(value, b.convert(bias, dtype_of(value)));
    }
    return b.convert(value, a.dtype("out_dtype").value_or(dtype_of(x)));
}

}  // namespace

Node *chosen_product(Builder &b, Node *left, Node *right) {
    const auto is_worth = [&](const std::optional<Chosen> &chosen, Node *vectors) {
        const Extent matrices = chosen ? sizes_of(chosen->table)[0] : Extent(0), count = sizes_of(vectors)[0];
        return chosen && matrices.is_constant() && count.is_constant() && matrices.value() <= largest_table &&
               count.value() >= matrices.value();
    };
    const Extents &of_left = sizes_of(left), &of_right = sizes_of(right);
    if (is_floating_point(dtype_of(left)) && of_left[1] == Extent(1)) {
        if (const auto chosen = chosen_matrices(b, right); is_worth(chosen, left)) {
            return b.unsqueeze(rows_with_table(b, b.squeeze(left, {1}), *chosen), 1);
        }
    }
    if (is_floating_point(dtype_of(left)) && of_right[2] == Extent(1)) {
        if (auto chosen = chosen_matrices(b, left); is_worth(chosen, right)) {
            chosen->table = b.transpose(chosen->table, 1, 2);
            return b.unsqueeze(rows_with_table(b, b.squeeze(right, {2}), *chosen), 2);
        }
    }
    return nullptr;
}

void add_grouped_product_rules(RuleTable &table) {
    table.add("aten._grouped_mm.default", [](Builder &b, const Arguments &a) {
        return grouped_product(b, a, a.tensor("self"), a.tensor("mat2"), a.optional_tensor("bias"));
    });
    table.add("transformers.grouped_mm_fallback.default", [](Builder &b, const Arguments &a) {  // the same by a library's own name
        return grouped_product(b, a, a.tensor("input"), a.tensor("weight"), nullptr);
    });
}

}  // namespace tilewright
