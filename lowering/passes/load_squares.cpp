#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/passes.h"
#include "lowering/passes/wide_access.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// The reads of one vector loop inside of an unrolled one.
class SquareLoads : public hi::IRGraphMutator {
public:
    SquareLoads(Launch &launch, const SymbolRanges &symbols, const For &unrolled, const For &lanes, Block &before)
        : launch_(launch), access_(launch, symbols), unrolled_(unrolled), lanes_(lanes), before_(before) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override {
        Expr e = hi::IRGraphMutator::visit(op);
        const auto *call = e.as<hi::Call>();
        const Buffer *buffer = call && call->call_type == hi::Call::Halide ? launch_.find_buffer(call->name) : nullptr;
        const int width = static_cast<int>(unrolled_.extent.value());
        const bool stays =
            buffer && (buffer->memory == Memory::shared || (buffer->memory == Memory::global && !is_written(launch_.body, buffer->name)));
        if (!stays || width < 2 || (buffer->memory == Memory::global && !access_.is_inside(*buffer, call->args)) ||
            !access_.why_narrow(*buffer, call->args, unrolled_, width).empty()) {
            return e;
        }
        note_alignment(launch_, buffer->name, access_bytes(*buffer, width));
        const Buffer registers = add_vector_registers(launch_, *buffer, width);
        Buffer *kept = launch_.find_buffer(registers.name);
        kept->extents = {lanes_.extent, width};
        kept->strides = {width, 1};
        VectorLoad load{registers.name, call->name, at_square_start(call->args), width, {tile::variable(lanes_.variable)}, {}};
        before_.push_back({For{lanes_.variable, lanes_.extent, Level::vector, {Statement{load}}}});
        return tile::read(*kept, {tile::variable(lanes_.variable), tile::variable(unrolled_.variable)});
    }
    /// What a select guards stays where it is.
    Expr visit(const hi::Select *op) override { return op; }

private:
    /// The unrolled axis at the start of its square: without the unrolled leaf.
    std::vector<Expr> at_square_start(const std::vector<Expr> &indices) const {
        const Axis &axis = *axis_stepped_by(launch_, unrolled_);
        Expr start = 0;
        for (const Leaf &leaf : axis.leaves) {
            if (leaf.name != unrolled_.variable && !(leaf.extent == Extent(1))) {
                start = start + (leaf.stride == Extent(1) ? tile::variable(leaf.name) : tile::variable(leaf.name) * to_halide(leaf.stride));
            }
        }
        start = simplify_index(start, access_.ranges());
        std::vector<Expr> result;
        for (const Expr &e : indices) {
            result.push_back(substitute_variables(e, {{axis.name, start}, {unrolled_.variable, Expr(0)}}));
        }
        return result;
    }
    Launch &launch_;
    WideAccess access_;
    const For &unrolled_;
    const For &lanes_;
    Block &before_;
};

void load_squares(Launch &launch, const SymbolRanges &symbols, Block &block) {
    Block result;
    for (Statement &s : block) {
        if (Block *body = body_of(s)) {
            load_squares(launch, symbols, *body);
        }
        auto *unrolled = s.as<For>();
        if (unrolled && unrolled->level == Level::unroll && axis_stepped_by(launch, *unrolled)) {
            for (Statement &inner : unrolled->body) {
                auto *lanes = inner.as<For>();
                if (!lanes || lanes->level != Level::vector || !lanes->extent.is_constant()) {
                    continue;
                }
                SquareLoads squares(launch, symbols, *unrolled, *lanes, result);
                for (Statement &of_lane : lanes->body) {
                    if (auto *store = of_lane.as<Store>()) {
                        std::transform(store->values.begin(), store->values.end(), store->values.begin(),
                                       [&](const Expr &e) { return squares.mutate(e); });
                    }
                }
            }
        }
        result.push_back(std::move(s));
    }
    block = std::move(result);
}

}  // namespace

void load_squares(Launch &launch, const SymbolRanges &symbols) { load_squares(launch, symbols, launch.body); }

}  // namespace tilewright
