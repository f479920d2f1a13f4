#include "lowering/nests/stage_expansion.h"

#include "dsl/algorithm/expression.h"
#include "lowering/nests/nest.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr StageExpander::visit(const hi::Variable *op) {
    const auto found = environment_.find(op->name);
    return found == environment_.end() ? Expr(op) : found->second;
}

Expr StageExpander::visit(const hi::Call *op) {
    if (!is_read(op)) {
        return hi::IRGraphMutator::visit(op);
    }
    std::vector<Expr> indices;
    for (const Expr &index : op->args) {
        indices.push_back(simplify_index(mutate(index), {}));
    }
    const Stage *stage = op->call_type == hi::Call::Image ? nullptr : algorithm_.find_stage(op->name);
    const bool is_pure = stage && !stage->func.function().has_update_definition() && !stage->func.function().has_extern_definition();
    if (!is_pure) {
        return hi::Call::make(op->type, op->name, indices, op->call_type, op->func, op->value_index, op->image, op->param);
    }
    auto &places = known_[{op->name, op->value_index}];
    if (const auto found = places.find(indices); found != places.end()) {
        return found->second;
    }
    const hi::Function function = stage->func.function();
    Environment environment;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        environment[function.args()[i]] = indices[i];
    }
    const Expr value =
        StageExpander(algorithm_, environment, known_).mutate(inline_lets(function.definition().values().at(op->value_index)));
    places.emplace(indices, value);
    return value;
}

std::map<std::string, Expr> places_on_axes(const Stage &stage, const std::vector<std::string> &axes) {
    std::map<std::string, Expr> places;
    for (std::size_t i = 0; i < stage.extents.size() && i < axes.size(); ++i) {
        places[stage.func.function().args()[i]] =
            stage.extents[i] == Extent(1) ? Expr(0) : Halide::Internal::Variable::make(Halide::Int(32), axes[i]);
    }
    return places;
}

Expr expand_stages(const Algorithm &algorithm, const Expr &e, const StageExpander::Environment &environment) {
    StageExpander::Known known;
    return StageExpander(algorithm, environment, known).mutate(inline_lets(e));
}

}  // namespace tilewright
