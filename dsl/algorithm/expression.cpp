#include "dsl/algorithm/expression.h"

#include <set>

#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

class InlineLets : public hi::IRGraphMutator {
    using hi::IRGraphMutator::visit;
    std::map<std::string, Expr> values;

    Expr visit(const hi::Let *op) override {
        Expr value = mutate(op->value);
        std::swap(values[op->name], value);
        Expr body = mutate(op->body);
        std::swap(values[op->name], value);
        return body;
    }
    Expr visit(const hi::Variable *op) override {
        auto found = values.find(op->name);
        return found != values.end() && found->second.defined() ? found->second : Expr(op);
    }
};

class VisitReads : public hi::IRGraphVisitor {
    using hi::IRGraphVisitor::visit;
    const std::function<void(const hi::Call *)> &callback;

    void visit(const hi::Call *op) override {
        if (is_read(op)) {
            callback(op);
        }
        hi::IRGraphVisitor::visit(op);
    }

public:
    explicit VisitReads(const std::function<void(const hi::Call *)> &callback) : callback(callback) {}
};

class CollectVariables : public hi::IRGraphVisitor {
    using hi::IRGraphVisitor::visit;
    void visit(const hi::Variable *op) override {
        if (seen.insert(op->name).second) {
            names.push_back(op->name);
        }
    }
    std::set<std::string> seen;

public:
    std::vector<std::string> names;
};

bool match_all(const std::vector<Expr> &patterns, const std::vector<Expr> &expressions, std::map<std::string, Expr> &bindings) {
    if (patterns.size() != expressions.size()) {
        return false;
    }
    for (size_t i = 0; i < patterns.size(); i++) {
        if (!match(patterns[i], expressions[i], bindings)) {
            return false;
        }
    }
    return true;
}

template<typename Node> bool match_operands(const Expr &pattern, const Expr &expression, std::map<std::string, Expr> &bindings) {
    const auto *p = pattern.as<Node>(), *e = expression.as<Node>();
    return match(p->a, e->a, bindings) && match(p->b, e->b, bindings);
}

}  // namespace

Expr inline_lets(const Expr &expression) { return InlineLets().mutate(expression); }

std::vector<Expr> inline_lets(const std::vector<Expr> &expressions) {
    std::vector<Expr> result;
    for (const Expr &e : expressions) {
        result.push_back(inline_lets(e));
    }
    return result;
}

bool is_read(const hi::Call *call) { return call->call_type == hi::Call::Halide || call->call_type == hi::Call::Image; }

void visit_reads(const Expr &expression, const std::function<void(const hi::Call *)> &visit) {
    VisitReads visitor(visit);
    expression.accept(&visitor);
}

bool contains_read(const Expr &expression) {
    bool found = false;
    visit_reads(expression, [&](const hi::Call *) { found = true; });
    return found;
}

bool is_indirect(const Expr &index) {
    const auto *call = index.as<hi::Call>();
    return (call && !math::primitive_name(call).empty()) || contains_read(index);
}

std::vector<std::string> variables_of(const Expr &expression) {
    CollectVariables collector;
    expression.accept(&collector);
    return collector.names;
}

bool mentions(const Expr &expression, const std::string &variable) {
    for (const std::string &name : variables_of(expression)) {
        if (name == variable) {
            return true;
        }
    }
    return false;
}

bool match(const Expr &pattern, const Expr &expression, std::map<std::string, Expr> &bindings) {
    if (pattern.same_as(expression)) {
        return true;
    }
    if (pattern.type() != expression.type()) {
        return false;
    }
    if (const auto *wildcard = pattern.as<hi::Variable>()) {
        if (auto bound = bindings.find(wildcard->name); bound != bindings.end()) {
            if (!bound->second.defined()) {
                bound->second = expression;
                return true;
            }
            return hi::graph_equal(bound->second, expression);
        }
    }
    if (pattern->node_type != expression->node_type) {
        return false;
    }
    switch (pattern->node_type) {
        case hi::IRNodeType::Add:
            return match_operands<hi::Add>(pattern, expression, bindings);
        case hi::IRNodeType::Sub:
            return match_operands<hi::Sub>(pattern, expression, bindings);
        case hi::IRNodeType::Mul:
            return match_operands<hi::Mul>(pattern, expression, bindings);
        case hi::IRNodeType::Div:
            return match_operands<hi::Div>(pattern, expression, bindings);
        case hi::IRNodeType::Min:
            return match_operands<hi::Min>(pattern, expression, bindings);
        case hi::IRNodeType::Max:
            return match_operands<hi::Max>(pattern, expression, bindings);
        case hi::IRNodeType::EQ:
            return match_operands<hi::EQ>(pattern, expression, bindings);
        case hi::IRNodeType::NE:
            return match_operands<hi::NE>(pattern, expression, bindings);
        case hi::IRNodeType::LT:
            return match_operands<hi::LT>(pattern, expression, bindings);
        case hi::IRNodeType::LE:
            return match_operands<hi::LE>(pattern, expression, bindings);
        case hi::IRNodeType::GT:
            return match_operands<hi::GT>(pattern, expression, bindings);
        case hi::IRNodeType::GE:
            return match_operands<hi::GE>(pattern, expression, bindings);
        case hi::IRNodeType::And:
            return match_operands<hi::And>(pattern, expression, bindings);
        case hi::IRNodeType::Or:
            return match_operands<hi::Or>(pattern, expression, bindings);
        case hi::IRNodeType::Not:
            return match(pattern.as<hi::Not>()->a, expression.as<hi::Not>()->a, bindings);
        case hi::IRNodeType::Cast:
            return match(pattern.as<hi::Cast>()->value, expression.as<hi::Cast>()->value, bindings);
        case hi::IRNodeType::Select: {
            const auto *p = pattern.as<hi::Select>(), *e = expression.as<hi::Select>();
            return match(p->condition, e->condition, bindings) && match(p->true_value, e->true_value, bindings) &&
                   match(p->false_value, e->false_value, bindings);
        }
        case hi::IRNodeType::Call: {
            const auto *p = pattern.as<hi::Call>(), *e = expression.as<hi::Call>();
            return p->name == e->name && p->call_type == e->call_type && p->value_index == e->value_index &&
                   match_all(p->args, e->args, bindings);
        }
        default:
            return hi::graph_equal(pattern, expression);
    }
}

}  // namespace tilewright
