#include "lowering/fusion/known_values.h"

#include <algorithm>
#include <unordered_map>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/comparison_mutator.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "lowering/fusion/index_map.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

using KnownValues = std::unordered_map<std::string, Expr>;

bool is_whole(Halide::Type type) { return type.is_bool() || (type.is_int() && type.bits() >= 32); }

Expr constant(Halide::Type type, std::int64_t value) { return type.is_bool() ? hi::make_bool(value != 0) : hi::make_const(type, value); }

/// Puts constants in the place of reads of known values, and what follows from them.
class Folder : public ComparisonMutator<Folder> {
public:
    explicit Folder(const KnownValues &known) : known_(known) {}

private:
    friend ComparisonMutator<Folder>;
    using ComparisonMutator<Folder>::visit;

    template<typename Node> Expr compare(const Node *op) {
        const Expr a = mutate(op->a), b = mutate(op->b);
        const Expr result = a.same_as(op->a) && b.same_as(op->b) ? Expr(op) : Node::make(a, b);
        if (hi::is_const(a) && hi::is_const(b) && is_whole(a.type())) {
            const auto value = known_everywhere(result, {});
            return value ? constant(op->type, *value) : result;
        }
        return result;
    }
    Expr visit(const hi::And *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return hi::is_const_zero(a) || hi::is_const_one(b) ? a : hi::is_const_zero(b) || hi::is_const_one(a) ? b : a && b;
    }
    Expr visit(const hi::Or *op) override {
        const Expr a = mutate(op->a), b = mutate(op->b);
        return hi::is_const_one(a) || hi::is_const_zero(b) ? a : hi::is_const_one(b) || hi::is_const_zero(a) ? b : a || b;
    }
    Expr visit(const hi::Not *op) override {
        const Expr a = mutate(op->a);
        return hi::is_const(a) ? hi::make_bool(hi::is_const_zero(a)) : hi::Not::make(a);
    }
    Expr visit(const hi::Select *op) override {
        const Expr condition = mutate(op->condition);
        return hi::is_const(condition) ? mutate(hi::is_const_one(condition) ? op->true_value : op->false_value)
                                       : hi::Select::make(condition, mutate(op->true_value), mutate(op->false_value));
    }
    Expr visit(const hi::Call *op) override {
        if (is_read(op)) {
            const auto found = known_.find(op->name);
            return found == known_.end() ? hi::IRGraphMutator::visit(op) : found->second;
        }
        const Expr result = hi::IRGraphMutator::visit(op);
        const auto *call = result.as<hi::Call>();
        const std::string_view name = math::primitive_name(call);
        if ((name == "convert" || name == "explicit_cast") && is_whole(call->type) && hi::is_const(call->args[0])) {
            const auto value = known_everywhere(result, {});
            return value ? constant(call->type, *value) : result;
        }
        return result;
    }

    const KnownValues &known_;
};

class KnownValueFolder {
public:
    explicit KnownValueFolder(const Algorithm &algorithm) : result_(algorithm) {}

    Algorithm run() {
        for (Stage &stage : result_.stages) {
            const hi::Function function = stage.func.function();
            if (function.has_extern_definition() || function.outputs() != 1) {
                continue;
            }
            if (function.has_update_definition()) {
                find_fold(stage);
            } else {
                fold(stage, function);
            }
        }
        return std::move(result_);
    }

private:
    Expr folded(const Expr &value) const { return known_.empty() ? value : Folder(known_).mutate(value); }

    void fold(Stage &stage, const hi::Function &function) {
        const Expr value = inline_lets(function.values()[0]);
        Expr simplest = folded(value);
        if (is_whole(value.type()) && !contains_read(simplest)) {
            std::vector<IndexAxis> axes;
            for (std::size_t i = 0; i < function.args().size(); ++i) {
                axes.push_back({function.args()[i], stage.extents[i]});
            }
            if (const auto known = known_everywhere(simplest, axes)) {
                simplest = known_[stage.name()] = constant(value.type(), *known);
            }
        }
        if (!simplest.same_as(value)) {
            std::vector<Halide::Var> arguments;
            for (const std::string &name : function.args()) {
                arguments.emplace_back(name);
            }
            stage.func = named_func(stage.name());
            stage.func(arguments) = simplest;
        }
    }

    /// A fold of terms that leave its first value as it is: a sum of zeros.
    void find_fold(const Stage &stage) {
        const auto fold = match_fold(stage.func);
        const bool keeps =
            fold && fold->terms.size() == 1 &&
            (fold->combiner == Combiner::sum || fold->combiner == Combiner::logical_and || fold->combiner == Combiner::logical_or);
        if (!keeps || !is_whole(fold->initial[0].type())) {
            return;
        }
        const auto first = known_everywhere(folded(fold->initial[0]), {}), term = known_everywhere(folded(inline_lets(fold->terms[0])), {});
        if (first && term && *first == *term && (fold->combiner != Combiner::sum || *first == 0)) {
            known_[stage.name()] = constant(fold->initial[0].type(), *first);
        }
    }

    Algorithm result_;
    KnownValues known_;
};

}  // namespace

Algorithm fold_known_values(const Algorithm &algorithm) { return KnownValueFolder(algorithm).run(); }

}  // namespace tilewright
