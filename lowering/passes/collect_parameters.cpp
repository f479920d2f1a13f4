#include "dsl/algorithm/math.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

class FindChecks : public Halide::Internal::IRGraphVisitor {
public:
    bool found = false;

private:
    using Halide::Internal::IRGraphVisitor::visit;
    void visit(const Halide::Internal::Call *op) override {
        found = found || math::primitive_name(op) == "checked_index";
        Halide::Internal::IRGraphVisitor::visit(op);
    }
};

}  // namespace

void collect_parameters(tile::Launch &launch, const SymbolRanges &symbols) {
    launch.symbols.clear();
    for (const auto &[name, range] : symbols) {
        launch.symbols.push_back(name);
    }
    FindChecks checks;
    tile::visit_statements(launch.body, [&](const tile::Statement &s) {
        for (const tile::Expr &e : tile::expressions_of(s)) {
            e.accept(&checks);
        }
    });
    launch.checks_indices = launch.checks_indices || checks.found;
}

}  // namespace tilewright
