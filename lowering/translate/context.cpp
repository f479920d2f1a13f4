#include "lowering/translate/context.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/simplify.h"
#include "dsl/error.h"
#include "lowering/translate/index_range.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// Replaces several variables at once, so that d0 and d1 may change places.
class SubstituteAll : public hi::IRGraphMutator {
    using hi::IRGraphMutator::visit;
    const std::map<std::string, Expr> &values;
    Expr visit(const hi::Variable *op) override {
        auto found = values.find(op->name);
        return found == values.end() ? Expr(op) : found->second;
    }

public:
    explicit SubstituteAll(const std::map<std::string, Expr> &values) : values(values) {}
};

/// Whether repeating the expression in every reader costs less than a stage of its own.
bool is_small(const Expr &expression) {
    constexpr int limit = 16;
    class Counter : public hi::IRGraphVisitor {
        void include(const Expr &e) override {
            count++;
            hi::IRGraphVisitor::include(e);
        }

    public:
        int count = 0;
    } counter;
    expression.accept(&counter);
    return counter.count <= limit;
}

std::string axis(std::size_t i) { return "d" + std::to_string(i); }

std::map<std::string, Expr> axes_to(const Indices &indices) {
    std::map<std::string, Expr> values;
    for (std::size_t i = 0; i < indices.size(); i++) {
        values.emplace(axis(i), indices[i]);
    }
    return values;
}

Indices axes(int rank) {
    std::vector<Halide::Var> vars = argument_vars(rank);
    return {vars.begin(), vars.end()};
}

}  // namespace

Expr TensorValue::operator()(const Indices &indices) const {
    internal_assert(static_cast<int>(indices.size()) == rank(), "a value of rank {} is read with {} indices", rank(), indices.size());
    return SubstituteAll(axes_to(indices)).mutate(element_);
}

Expr call(const Halide::Func &func, const Indices &indices, int index) { return hi::Call::make(func.function(), indices, index); }

bool is_renaming(const Expr &element) {
    const auto *call = element.as<hi::Call>();
    if (!call || !is_read(call)) {
        return !contains_read(element);
    }
    std::set<std::string> seen;
    return std::all_of(call->args.begin(), call->args.end(), [&](const Expr &index) {
        const auto *variable = index.as<hi::Variable>();
        return variable ? seen.insert(variable->name).second : hi::is_const(index);
    });
}

bool is_index_map(const Expr &element) {
    const auto *call = element.as<hi::Call>();
    return call && is_read(call) ? std::none_of(call->args.begin(), call->args.end(), contains_read) : !contains_read(element);
}

Expr TranslationContext::simplify_index(const Expr &index, const std::vector<Extent> &extents) {
    hi::Scope<hi::Interval> bounds;
    for (std::size_t i = 0; i < extents.size(); i++) {
        auto value = extents[i].constant();
        Expr last = value && *value > 0 ? Expr(static_cast<int>(*value - 1)) : hi::Interval::pos_inf();
        bounds.push(axis(i), hi::Interval(0, last));
    }
    return simplify_integers(index, bounds);
}

const TensorMeta &TranslationContext::result_meta(const Node &node, int index) {
    if (const auto *single = std::get_if<TensorMeta>(&node.meta); single && index == 0) {
        return *single;
    }
    if (const auto *several = std::get_if<std::vector<std::optional<TensorMeta>>>(&node.meta)) {
        auto i = static_cast<std::size_t>(index);
        if (i < several->size() && (*several)[i]) {
            return *(*several)[i];
        }
    }
    internal_error("node {} ({}) has no result {}", node.name, node.target, index);
}

Indices TranslationContext::indices(const Node &node) { return axes(result_meta(node).rank()); }

std::string TranslationContext::claim(const std::string &base, bool is_node_name) {
    auto taken = [&](const std::string &name) {
        return names_.contains(name) || (node_names_.contains(name) && !(is_node_name && name == base));
    };
    std::string name = base;
    for (int i = 1; taken(name); i++) {
        name = base + "_" + std::to_string(i);
    }
    names_.insert(name);
    return name;
}

TranslationContext::Result &TranslationContext::result(const Node *node, int &index) {
    index = 0;
    if (node->target == "getitem" && node->opcode == Opcode::call_function) {
        index = integer(*node, "index");
        node = node->input("tuple");
    }
    auto found = results_.find(node);
    internal_assert(found != results_.end() && static_cast<std::size_t>(index) < found->second.size(),
                    "node {} ({}) has no translated result {}", node->name, node->target, index);
    return found->second[static_cast<std::size_t>(index)];
}

TensorValue TranslationContext::value(const Node *node, bool (*is_readable)(const Expr &)) {
    int index = 0;
    Result &found = result(node, index);
    if (!is_readable(found.element)) {
        become_stage(found);
    }
    return {found.meta, found.element};
}

void TranslationContext::become_stage(Result &result) {
    Halide::Func func = named_func(claim(result.stage, result.has_node_name));
    func(argument_vars(result.meta.rank())) = result.element;
    translated_.algorithm.stages.push_back({func, result.meta.sizes, {}, result.op, result.module_path});
    result.element = call(func, axes(result.meta.rank()));
}

void TranslationContext::define_results(const Node &node, const std::vector<Expr> &elements) {
    std::vector<Result> results;
    for (std::size_t i = 0; i < elements.size(); i++) {
        bool single = elements.size() == 1;
        std::string stage = single ? node.name : node.name + "_" + std::to_string(i);
        results.push_back({result_meta(node, static_cast<int>(i)), elements[i], stage, single, node.target, node.module_path});
        internal_assert(elements[i].type() == to_halide(results.back().meta.dtype), "{} ({}) translates to {}, its meta says {}", node.name,
                        node.target, name(from_halide(elements[i].type())), name(results.back().meta.dtype));
    }
    results_[&node] = std::move(results);
}

bool TranslationContext::is_element_read(const Node &node, int element) const { return read_elements_.contains({&node, element}); }

void TranslationContext::define_constant(const Node &node, const Expr &element) { define_results(node, {element}); }

void TranslationContext::define_pointwise(const Node &node, const std::function<Expr(const Indices &)> &element) {
    define_results(node, {element(indices(node))});
    int index = 0;
    Result &defined = result(&node, index);
    if (contains_read(defined.element) || !is_small(defined.element)) {
        become_stage(defined);
    }
}

void TranslationContext::define_view(const Node &node, const TensorValue &source, const Indices &map) {
    Indices simple;
    for (const Expr &index : map) {
        simple.push_back(simplify_index(index, result_meta(node).sizes));
    }
    Expr element = source(simple);
    if (const auto *read = element.as<hi::Call>(); read && is_read(read)) {
        Indices folded;
        for (const Expr &index : read->args) {
            folded.push_back(simplify_index(index, result_meta(node).sizes));
        }
        element = hi::Call::make(read->type, read->name, folded, read->call_type, read->func, read->value_index, read->image, read->param);
    }
    define_results(node, {element});
}

Halide::Func TranslationContext::make_func(const Node &node, std::string_view suffix) {
    return named_func(suffix.empty() ? claim(node.name, true) : claim(node.name + "_" + std::string(suffix), false));
}

void TranslationContext::add_stage(const Node &node, const Halide::Func &func, std::vector<Extent> extents,
                                   std::vector<Extent> reduction_extents) {
    translated_.algorithm.stages.push_back({func, std::move(extents), std::move(reduction_extents), node.target, node.module_path});
}

Halide::Func TranslationContext::add_reduction(const Node &node, std::string_view suffix, const std::vector<Extent> &extents,
                                               Combiner combiner, const std::vector<Extent> &reduction_extents,
                                               const std::function<std::vector<Expr>(const Indices &, const Indices &)> &terms) {
    Halide::Func func = make_func(node, suffix);
    std::vector<Halide::Var> arguments = argument_vars(static_cast<int>(extents.size()));
    std::vector<Expr> sizes;
    for (const Extent &extent : reduction_extents) {
        sizes.push_back(to_halide(extent));
    }
    Halide::RDom domain = reduction_domain(sizes);
    Indices reduced;
    for (int i = 0; i < domain.dimensions(); i++) {
        reduced.push_back(Expr(domain[i]));
    }
    define_reduction(func, arguments, combiner, terms({arguments.begin(), arguments.end()}, reduced), domain);
    add_stage(node, func, extents, reduction_extents.empty() ? std::vector<Extent>{1} : reduction_extents);
    return func;
}

TensorValue TranslationContext::as_stage(const Node &node, std::string_view suffix, const TensorValue &value) {
    Halide::Func func = make_func(node, suffix);
    func(argument_vars(value.rank())) = value.element();
    add_stage(node, func, value.meta().sizes);
    return {value.meta(), call(func, axes(value.rank()))};
}

std::string TranslationContext::tensor_name(const Node &node) const {
    auto found = qualified_names_.find(node.name);
    return found == qualified_names_.end() ? node.name : found->second;
}

Expr TranslationContext::place(const Node &node, const Expr &index, const Extent &size, bool wrap, const std::string &what) {
    const std::vector<Extent> &extents = result_meta(node).sizes;
    const SymbolRanges &symbols = translated_.algorithm.symbols;
    if (auto formula = translation::ranged_index(index, extents, symbols)) {
        bool inside =
            translation::provably_at_most(0, formula->low, symbols) && translation::provably_at_most(formula->high, size - 1, symbols);
        if (inside) {
            return simplify_index(formula->index, extents);
        }
    }
    return checked_place(node, index, size, wrap, what);
}

Expr TranslationContext::checked_place(const Node &node, const Expr &index, const Extent &size, bool wrap, const std::string &what) {
    translated_.index_sites.push_back(fmt::format("node {}: {}", node.name, what));
    return math::checked_index(index, to_halide(size), wrap, static_cast<int>(translated_.index_sites.size()) - 1);
}

}  // namespace tilewright
