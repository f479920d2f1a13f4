#include "lowering/fusion/round_trip.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool compares(const StageNode &node) {
    struct Finder : hi::IRGraphVisitor {
        bool found = false;
        using hi::IRGraphVisitor::visit;
        void visit(const hi::Call *op) override {
            static const std::set<std::string_view> comparisons{"eq", "ne", "lt", "le", "gt", "ge"};
            found |= comparisons.count(math::primitive_name(op)) != 0;
            hi::IRGraphVisitor::visit(op);
        }
    } finder;
    for (const Expr &value : terms_of(*node.stage)) {
        value.accept(&finder);
    }
    const auto fold = node.form == Form::reduction ? match_fold(node.stage->func) : std::nullopt;
    return finder.found || node.form == Form::sort ||
           (fold && (fold->combiner == Combiner::arg_maximum || fold->combiner == Combiner::arg_minimum));
}

}  // namespace

RoundTrip find_round_trip(const StageGraph &graph, const std::vector<int> &members, const hi::Call *call, int reader) {
    if (math::primitive_name(call) != "convert" || graph.node(reader).form == Form::contraction) {
        return {};
    }
    const auto *inner = call->args[0].as<hi::Call>();
    const int index = inner && is_read(inner) ? graph.find_stage(inner->name) : -1;
    if (index < 0) {
        return {};
    }
    const StageNode &narrow = graph.node(index);
    if (!std::binary_search(members.begin(), members.end(), index) || narrow.is_output || narrow.form != Form::pointwise ||
        narrow.readers.size() != 1 || narrow.stage->func.outputs() != 1) {
        return {};
    }
    const StageNode &widened = graph.node(reader);
    const bool seen_once =
        widened.readers.size() == 1 && !widened.is_output && !compares(widened) && !compares(graph.node(widened.readers[0]));
    const Expr value = terms_of(*narrow.stage)[0];
    const auto *made = value.as<hi::Call>();
    if (!seen_once || !made || math::primitive_name(made) != "convert" || made->args[0].type() != call->type || !call->type.is_float()) {
        return {};
    }
    std::map<std::string, Expr> values;
    for (std::size_t i = 0; i < narrow.axes.size(); ++i) {
        values[narrow.axes[i].name] = inner->args[i];
    }
    return {bind_variables(made->args[0], values), index};
}

}  // namespace tilewright
