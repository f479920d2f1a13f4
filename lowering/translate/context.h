// What translations of operators work with: operands to read, Funcs to define. Also the interface for custom operators.
//
//     register_translation("mylib.scaled_add.default", [](TranslationContext &context, const Node &node) {
//         TensorValue a = context.operand(node, "a"), b = context.operand(node, "b");
//         context.define_pointwise(node, [&](const Indices &at) { return math::add(a(at), math::mul(b(at), Halide::Expr(2.0F))); });
//     });
#pragma once

#include <Halide.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/graph/program.h"
#include "lowering/translate/translate.h"

namespace tilewright {

using Indices = std::vector<Halide::Expr>;  ///< one for each dimension, outermost first

/// A tensor that expressions can read.
class TensorValue {
public:
    TensorValue() = default;
    /// `element` is over the variables d0, d1, … of argument_vars().
    TensorValue(TensorMeta meta, Halide::Expr element) : meta_(std::move(meta)), element_(std::move(element)) {}

    Halide::Expr operator()(const Indices &indices) const;  ///< the element there; the caller keeps every index inside its extent
    const TensorMeta &meta() const { return meta_; }
    int rank() const { return meta_.rank(); }
    const Extent &size(int dim) const { return meta_.sizes[static_cast<std::size_t>(dim)]; }
    Halide::Expr extent(int dim) const { return to_halide(size(dim)); }
    Halide::Type type() const { return element_.type(); }
    const Halide::Expr &element() const { return element_; }

private:
    TensorMeta meta_;
    Halide::Expr element_;
};

class TranslationContext {
public:
    // Arguments of a node. UserError with the node's name where one is missing or of another kind.
    TensorValue operand(const Node &node, std::string_view argument);
    /// For define_view(): a view of a view stays one index map.
    TensorValue view_operand(const Node &node, std::string_view argument);
    std::vector<TensorValue> operands(const Node &node, std::string_view argument);  ///< of a list
    std::vector<std::optional<TensorValue>> optional_operands(const Node &node, std::string_view argument);
    static Extent extent(const Node &node, std::string_view argument);
    static std::vector<Extent> extents(const Node &node, std::string_view argument);
    static int integer(const Node &node, std::string_view argument);
    static std::vector<int> integers(const Node &node, std::string_view argument);
    static double number(const Node &node, std::string_view argument);
    static bool flag(const Node &node, std::string_view argument);
    static std::string text(const Node &node, std::string_view argument);
    static DType dtype(const Node &node, std::string_view argument);
    static const Argument &argument(const Node &node, std::string_view argument);

    /// Meta of the node's result `index`.
    static const TensorMeta &result_meta(const Node &node, int index = 0);
    /// d0, d1, … of the node's first result, as expressions.
    static Indices indices(const Node &node);

    // Results. A node gets all of them, by one of these.
    /// An elementwise or gathering result: `element` yields the value at these indices.
    void define_pointwise(const Node &node, const std::function<Halide::Expr(const Indices &)> &element);
    /// A result that is only an index map: readers read through it where it is a renaming, otherwise it becomes a stage on first use.
    void define_view(const Node &node, const TensorValue &source, const Indices &map);
    /// A value without operands: it is repeated wherever it is read.
    void define_constant(const Node &node, const Halide::Expr &element);
    /// Results read off stages that are already added; each is over d0, d1, …. One that is no plain read becomes a stage on first use.
    void define_results(const Node &node, const std::vector<Halide::Expr> &elements);

    // Stages.
    /// An undefined Func of the node's own name, or with a suffix where the node takes several stages. Define it, then add_stage().
    Halide::Func make_func(const Node &node, std::string_view suffix = "");
    void add_stage(const Node &node, const Halide::Func &func, std::vector<Extent> extents, std::vector<Extent> reduction_extents = {});
    /// A stage with a fold over a domain of `reduction_extents`; `terms` is called with the arguments' and the domain's variables.
    Halide::Func add_reduction(const Node &node, std::string_view suffix, const std::vector<Extent> &extents, Combiner combiner,
                               const std::vector<Extent> &reduction_extents,
                               const std::function<std::vector<Halide::Expr>(const Indices &arguments, const Indices &reduced)> &terms);
    /// The same tensor as a stage of its own, which `extern` stages and updates need.
    TensorValue as_stage(const Node &node, std::string_view suffix, const TensorValue &value);

    /// A place for a read or a write in a dimension of `size`: the index itself where it is a formula over d0, d1, … of the node's first
    /// result that provably stays inside, otherwise math::checked_index with a new site; `what` names the tensor and the dimension.
    Halide::Expr place(const Node &node, const Halide::Expr &index, const Extent &size, bool wrap, const std::string &what);
    /// Always checked.
    Halide::Expr checked_place(const Node &node, const Halide::Expr &index, const Extent &size, bool wrap, const std::string &what);

    /// Whether anything reads this element of the node's tuple.
    bool is_element_read(const Node &node, int element) const;

    /// What the user calls a node's tensor: the qualified name of a weight, else the node's name.
    std::string tensor_name(const Node &node) const;

    /// Index expressions are integers: folds them, given each variable's extent.
    static Halide::Expr simplify_index(const Halide::Expr &index, const std::vector<Extent> &extents);

private:
    friend class Translator;
    struct Result {
        TensorMeta meta;
        Halide::Expr element;
        std::string stage;           ///< name that the stage gets, if it becomes one
        bool has_node_name = false;  ///< that name is the node's own
        std::string op, module_path;
    };
    TensorValue value(const Node *node, bool (*is_readable)(const Halide::Expr &));
    Result &result(const Node *node, int &index);
    void become_stage(Result &result);
    /// A stage name that no other stage has, and no other node.
    std::string claim(const std::string &base, bool is_node_name);

    Translated translated_;
    std::set<std::pair<const Node *, int>> read_elements_;  ///< of tuples
    std::map<const Node *, std::vector<Result>> results_;
    std::map<std::string, std::string> qualified_names_;  ///< of weights, by placeholder
    std::set<std::string> names_;                         ///< of stages so far
    std::set<std::string> node_names_;                    ///< of all nodes of the graph
};

/// Whether reading this element is reading another tensor with its dimensions renamed, dropped or fixed.
bool is_renaming(const Halide::Expr &element);
/// Whether it is one read of another tensor, at whatever place, or reads nothing.
bool is_index_map(const Halide::Expr &element);

/// func(indices), element `index` of its tuple.
Halide::Expr call(const Halide::Func &func, const Indices &indices, int index = 0);

}  // namespace tilewright
