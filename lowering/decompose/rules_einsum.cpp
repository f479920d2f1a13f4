// torch.einsum: operands are multiplied pairwise from the left, each pair as one batched product.
#include <algorithm>
#include <set>

#include "lowering/decompose/matmul.h"
#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// Dimensions are labelled by letters; those of an ellipsis by numbers below 0, counted from the right.
using Labels = std::vector<int>;

struct Labelled {
    Node *value;
    Labels labels;
};

bool contains(const Labels &labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

/// Labels of one term of the equation, for a tensor of this rank.
Labels parse_term(const Arguments &a, const std::string &term, int rank, int ellipsis_rank) {
    Labels labels;
    const int letters = static_cast<int>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
    for (std::size_t i = 0; i < term.size(); ++i) {
        if (term[i] == '.') {
            if (term.compare(i, 3, "...") != 0) {
                a.refuse(fmt::format("'{}' has a lone dot", term));
            }
            const int count = ellipsis_rank >= 0 ? ellipsis_rank : rank - letters;
            for (int k = count; k > 0; --k) {
                labels.push_back(-k);
            }
            i += 2;
        } else {
            labels.push_back(term[i]);
        }
    }
    if (rank >= 0 && static_cast<int>(labels.size()) != rank) {
        a.refuse(fmt::format("term '{}' does not name the {} dimensions of its operand", term, rank));
    }
    return labels;
}

std::vector<std::string> split_terms(const std::string &text) {
    std::vector<std::string> terms(1);
    for (char c : text) {
        if (c == ',') {
            terms.emplace_back();
        } else {
            terms.back() += c;
        }
    }
    return terms;
}

/// Takes the diagonal of each label that a term repeats.
Labelled without_repeats(Builder &b, Labelled operand) {
    for (std::size_t i = 0; i < operand.labels.size(); ++i) {
        for (std::size_t j = i + 1; j < operand.labels.size(); ++j) {
            if (operand.labels[i] == operand.labels[j]) {
                const int label = operand.labels[i];
                operand.value = b.apply("aten.diagonal.default", {{"self", operand.value},
                                                                  {"offset", Extent(0)},
                                                                  {"dim1", Extent(static_cast<int>(i))},
                                                                  {"dim2", Extent(static_cast<int>(j))}})
                                    .front();
                operand.labels.erase(operand.labels.begin() + static_cast<int>(j));
                operand.labels.erase(operand.labels.begin() + static_cast<int>(i));
                operand.labels.push_back(label);
                return without_repeats(b, operand);
            }
        }
    }
    return operand;
}

Extent size_of(const Labelled &operand, int label) {
    const auto found = std::find(operand.labels.begin(), operand.labels.end(), label);
    return sizes_of(operand.value)[found - operand.labels.begin()];
}

Labelled sum_out(Builder &b, const Labelled &operand, const std::set<int> &kept) {
    Dims dims;
    Labels labels;
    for (int i = 0; i < static_cast<int>(operand.labels.size()); ++i) {
        if (kept.contains(operand.labels[i])) {
            labels.push_back(operand.labels[i]);
        } else {
            dims.push_back(i);
        }
    }
    const DType type = dtype_of(operand.value);
    return {dims.empty() ? operand.value : b.convert(b.sum(b.to_compute(operand.value), dims), type), labels};
}

/// Brings an operand's dimensions into the order of `labels`; those that it lacks have size 1, those that it has besides have size 1 and
/// go.
Node *arranged(Builder &b, const Labelled &operand, const Labels &labels) {
    Dims order;
    Extents size;
    for (int label : labels) {
        const auto found = std::find(operand.labels.begin(), operand.labels.end(), label);
        if (found == operand.labels.end()) {
            size.emplace_back(1);
        } else {
            const int dim = static_cast<int>(found - operand.labels.begin());
            order.push_back(dim);
            size.push_back(sizes_of(operand.value)[dim]);
        }
    }
    for (int dim = 0; dim < rank_of(operand.value); ++dim) {
        if (std::find(order.begin(), order.end(), dim) == order.end()) {
            order.push_back(dim);
        }
    }
    return b.reshape(b.permute(operand.value, order), size);
}

/// Multiplies two operands and sums over what neither `kept` nor a later operand needs.
Labelled contract(Builder &b, const Labelled &x, const Labelled &y, const std::set<int> &kept) {
    Labels batch, rows, columns, inner;
    Labels all = x.labels;
    for (int label : y.labels) {
        if (!contains(all, label)) {
            all.push_back(label);
        }
    }
    for (int label : all) {
        const bool in_x = contains(x.labels, label) && !(size_of(x, label) == Extent(1));
        const bool in_y = contains(y.labels, label) && !(size_of(y, label) == Extent(1));
        if (in_x && in_y) {
            (kept.contains(label) ? batch : inner).push_back(label);
        } else if (in_y) {
            (kept.contains(label) ? columns : inner).push_back(label);
        } else {
            (kept.contains(label) ? rows : inner).push_back(label);
        }
    }
    const auto joined = [](Labels first, const Labels &second, const Labels &third) {
        first.insert(first.end(), second.begin(), second.end());
        first.insert(first.end(), third.begin(), third.end());
        return first;
    };
    Node *left = arranged(b, x, joined(batch, rows, inner));
    Node *right = arranged(b, y, joined(batch, inner, columns));
    const auto extent = [&](int label) {
        const Extent in_x = contains(x.labels, label) ? size_of(x, label) : Extent(1);
        return in_x == Extent(1) && contains(y.labels, label) ? size_of(y, label) : in_x;
    };
    const auto extents = [&](const Labels &labels) {
        Extents sizes;
        for (int label : labels) {
            sizes.push_back(extent(label));
        }
        return sizes;
    };
    const auto join = [](Extents first, const Extents &second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    };
    const DType type = dtype_of(x.value);
    left = b.broadcast(left, join(join(extents(batch), extents(rows)), extents(inner)));
    right = b.broadcast(right, join(join(extents(batch), extents(inner)), extents(columns)));
    const Extents batches = extents(batch);
    left = b.reshape(left, join(batches, {product(extents(rows)), product(extents(inner))}));
    right = b.reshape(right, join(batches, {product(extents(inner)), product(extents(columns))}));
    Node *value = inner.empty() ? b.mul(b.to_compute(left), b.to_compute(right)) : matmul(b, left, right);
    value = b.reshape(b.convert(value, type), join(join(batches, extents(rows)), extents(columns)));
    return {value, joined(batch, rows, columns)};
}

Node *einsum(Builder &b, const Arguments &a) {
    std::string equation = a.text("equation", "");
    std::erase(equation, ' ');
    const std::size_t arrow = equation.find("->");
    const std::vector<std::string> terms = split_terms(equation.substr(0, arrow));
    const std::vector<Node *> tensors = a.tensors("tensors");
    if (terms.size() != tensors.size()) {
        a.refuse(fmt::format("equation '{}' has {} terms for {} operands", equation, terms.size(), tensors.size()));
    }
    const DType type = result_type(std::vector<Operand>(tensors.begin(), tensors.end()));
    std::vector<Labelled> operands;
    int ellipsis_rank = 0;
    Labels seen;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const Labels labels = parse_term(a, terms[i], rank_of(tensors[i]), -1);
        ellipsis_rank = std::max(ellipsis_rank, static_cast<int>(std::count_if(labels.begin(), labels.end(), [](int l) { return l < 0; })));
        seen.insert(seen.end(), labels.begin(), labels.end());
        operands.push_back(without_repeats(b, {b.convert(tensors[i], type), labels}));
    }
    Labels output;
    if (arrow != std::string::npos) {
        output = parse_term(a, equation.substr(arrow + 2), -1, ellipsis_rank);
    } else {
        for (int k = ellipsis_rank; k > 0; --k) {
            output.push_back(-k);
        }
        for (int label : std::set<int>(seen.begin(), seen.end())) {
            if (label >= 0 && std::count(seen.begin(), seen.end(), label) == 1) {
                output.push_back(label);
            }
        }
    }
    Labelled value = operands.front();
    for (std::size_t i = 0; i < operands.size(); ++i) {
        std::set<int> kept(output.begin(), output.end());
        for (std::size_t j = i + 1; j < operands.size(); ++j) {
            kept.insert(operands[j].labels.begin(), operands[j].labels.end());
        }
        value = i == 0 ? sum_out(b, value, kept) : contract(b, value, operands[i], kept);
    }
    return arranged(b, value, output);
}

}  // namespace

void add_einsum_rules(RuleTable &table) { table.add("aten.einsum.default", einsum); }

}  // namespace tilewright
