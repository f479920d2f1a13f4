#include "lowering/products/computed_operand.h"

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "lowering/passes/index_math.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr int depth = 64;  // terms of a step
constexpr int chunk = 64;  // rows of a warpgroup's multiply
constexpr int slices = depth / 16;

/// The read that the copy unit serves becomes one of what it fetched.
class Fetched : public hi::IRGraphMutator {
public:
    Fetched(const Expr &place, Expr instead) : place_(place), instead_(std::move(instead)) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override { return hi::graph_equal(op, place_) ? instead_ : hi::IRGraphMutator::visit(op); }

private:
    Expr place_, instead_;
};

/// Quotients of the terms' axis that are the same in all of a step: what is read there is read once.
class StepQuotients : public hi::IRGraphMutator {
public:
    explicit StepQuotients(const tile::Axis &terms) : terms_(terms) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Div *op) override {
        const std::int64_t divisor = divisor_of(op);
        if (divisor == 0 || divisor % depth != 0) {
            return hi::IRGraphMutator::visit(op);
        }
        Expr first = 0;
        for (const tile::Leaf &leaf : terms_.leaves) {
            first = leaf.level == Level::loop ? first + tile::variable(leaf.name) * to_halide(leaf.stride) : first;
        }
        return first / static_cast<int>(divisor);
    }

private:
    /// Of the terms' axis, by one number after another; 0 where the expression is no such quotient.
    std::int64_t divisor_of(const Expr &e) const {
        const auto *op = e.as<hi::Div>();
        const auto divisor = op ? hi::as_const_int(op->b) : std::nullopt;
        return as_variable(e) == terms_.name ? 1 : divisor && *divisor > 0 ? *divisor * divisor_of(op->a) : 0;
    }
    const tile::Axis &terms_;
};

tile::Buffer registers(const std::string &name, Halide::Type type, std::vector<Extent> extents) {
    return tile::dense_buffer(name, {type}, tile::Memory::registers, std::move(extents));
}

tile::Buffer read_buffer(const MatrixOperand &operand, const FragmentShape &shape) {
    return registers(operand.name + "_read.vec", operand.read.type, {shape.chunks * slices * 4, 2 / operand.read.packing});
}

/// Which pair of neighbours along the terms of a thread's share.
Expr pair_number() {
    return ((tile::variable("m_chunk") * slices + tile::variable("k_slice")) * 2 + tile::variable("k_half")) * 2 + tile::variable("m_half");
}
tile::Statement over_pairs(tile::Block body, const FragmentShape &shape) {
    for (const auto &[name, extent] :
         {std::pair<std::string, int>{"m_half", 2}, {"k_half", 2}, {"k_slice", slices}, {"m_chunk", shape.chunks}}) {
        body = {tile::Statement{tile::For{name, extent, Level::unroll, std::move(body)}}};
    }
    return body.front();
}

}  // namespace

std::vector<tile::Leaf> computed_term_leaves() {
    return {{"k_slice", slices, Level::unroll, 16, 1},
            {"k_half", 2, Level::unroll, 8, 1},
            {"k_quad", 4, Level::thread, 2, 1},
            {"k_lane", 2, Level::vector, 1, 1}};
}

std::vector<tile::Buffer> computed_operand_buffers(const MatrixOperand &operand, Halide::Type type, const FragmentShape &shape) {
    return {registers(operand.name + "_values", type, {shape.chunks, slices, 2, 2, 2}), read_buffer(operand, shape)};
}

tile::Statement load_fetched(const MatrixOperand &operand, const FragmentShape &shape, const Nest &nest) {
    const int bytes = operand.read.type.bytes(), packing = operand.read.packing, row_bytes = depth / packing * bytes,
              per_piece = 16 / bytes;
    const Expr column = (tile::variable("k_slice") * 16 + tile::variable("k_half") * 8 + tile::variable("k_quad") * 2) / packing;
    const Expr row = tile::variable("m_warpgroup") * (shape.chunks * chunk) + tile::variable("m_chunk") * chunk +
                     tile::variable("m_warp") * 16 + tile::variable("m_half") * 8 + tile::variable("m_row");
    // As the copy unit swizzles rows of this length.
    const Expr turn = (tile::variable("m_row") / (128 / row_bytes)) % (row_bytes / 16);
    const Expr piece = simplify_index(column / per_piece, nest.ranges), within = simplify_index(column % per_piece, nest.ranges);
    const tile::VectorLoad load{operand.name + "_read.vec",
                                operand.name,
                                {tile::variable("slot"), row, (piece ^ turn) * per_piece + within},
                                2 / packing,
                                {pair_number()}};
    return over_pairs({tile::Statement{load}}, shape);
}

tile::Statement compute_operand(const MatrixOperand &operand, const std::string &k, Halide::Type type, const FragmentShape &shape,
                                const Nest &nest) {
    const std::string values = operand.name + "_values";
    const Expr fetched =
        tile::read(read_buffer(operand, shape), {pair_number(), operand.read.packing > 1 ? Expr(0) : tile::variable("k_lane")});
    const Expr value = StepQuotients(*nest.find_axis(k)).mutate(Fetched(operand.place, fetched).mutate(operand.value));
    const std::vector<Expr> place{tile::variable("m_chunk"), tile::variable("k_slice"), tile::variable("k_half"), tile::variable("m_half"),
                                  tile::variable("k_lane")};
    tile::Block store{tile::Statement{tile::Store{values, place, {value}}}};
    bool guarded = false;
    for (const std::string &name : {k, operand.rows}) {
        const tile::Axis &axis = *nest.find_axis(name);
        if (!axis.exact() && mentions(without_fetched(operand), name)) {
            store = {tile::Statement{tile::If{tile::variable(name) < to_halide(axis.extent), std::move(store)}}};
            guarded = true;
        }
    }
    if (guarded) {
        store.insert(store.begin(), tile::Statement{tile::Store{values, place, {math::convert(type, Expr(0.0F))}}});
    }
    return over_pairs({tile::Statement{tile::For{"k_lane", 2, Level::vector, std::move(store)}}}, shape);
}

Expr without_fetched(const MatrixOperand &operand) {
    return Fetched(operand.place, hi::make_zero(operand.read.type)).mutate(operand.value);
}

}  // namespace tilewright
