#include "lowering/streaming/streamed_output.h"

#include "dsl/algorithm/expression.h"
#include "lowering/nests/stage_expansion.h"
#include "lowering/passes/append.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

/// A quotient by a value of the row becomes a product: the row's reciprocal is taken once. What is stored rounds more coarsely.
class Reciprocals : public hi::IRGraphMutator {
public:
    explicit Reciprocals(const std::string &column) : column_(column) {}

private:
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Div *op) override {
        if (!op->type.is_float() || mentions(op->b, column_)) {
            return hi::IRGraphMutator::visit(op);
        }
        return mutate(op->a) * (hi::make_one(op->type) / op->b);
    }
    const std::string &column_;
};

tile::Block only_existing_columns(const StreamingLaunch &stream, tile::Block body) {
    const int column = stream.form.column;
    if (!stream.launch.axes[column].exact()) {
        body = {{tile::If{tile::variable(stream.axis_name(column)) < to_halide(stream.second.extents[column]), std::move(body)}}};
    }
    return body;
}

}  // namespace

tile::Block over_sums(const StreamingLaunch &stream, tile::Block body) {
    body = {{tile::For{"n_lane", 8, Level::vector, std::move(body)}}};
    body = {{tile::For{"m_half", 2, Level::unroll, std::move(body)}}};
    return {{tile::For{"n_group", stream.columns / StreamingLaunch::group_columns, Level::unroll, std::move(body)}}};
}

tile::Block only_existing_rows(const StreamingLaunch &stream, tile::Block body) {
    if (const Expr exists = stream.row_exists(); exists.defined()) {
        body = {{tile::If{exists, std::move(body)}}};
    }
    return body;
}

tile::Block store_streamed(StreamingLaunch &stream) {
    tile::Block block;
    if (stream.form.row_factor.defined()) {
        const Expr sum = stream.kept("sums", {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")});
        tile::Store scaled{"sums",
                           {0, 0, tile::variable("n_group"), tile::variable("m_half"), tile::variable("n_lane")},
                           {sum * stream.bound(stream.form.row_factor)}};
        append(block, over_sums(stream, {{scaled}}));
    }
    tile::Block wide, narrow;
    for (int output : stream.form.outputs) {
        const Stage &stage = stream.algorithm.stages[output];
        const std::map<std::string, Expr> places = places_on_axes(stage, stream.form.axes);
        std::vector<Expr> indices;
        for (const std::string &argument : stage.func.function().args()) {
            indices.push_back(places.at(argument));
        }
        const hi::Function function = stage.func.function();
        Expr value = function.has_update_definition() ? Expr(hi::Call::make(function, indices, 0))
                                                      : expand_stages(stream.algorithm, function.definition().values()[0], places);
        const bool along_columns = static_cast<int>(indices.size()) > stream.form.column &&
                                   mentions(indices[stream.form.column], stream.axis_name(stream.form.column));
        for (const tile::Buffer &target : stream.storage.targets(output, 0)) {
            const bool rounds = along_columns && target.types[0].bits() == 16;
            const Expr stored = rounds ? Reciprocals(stream.axis_name(stream.form.column)).mutate(value) : value;
            (along_columns ? wide : narrow).push_back({tile::Store{stream.used(target).name, indices, {stream.bound(stored)}}});
        }
    }
    if (!wide.empty()) {
        append(block, over_sums(stream, only_existing_columns(stream, only_existing_rows(stream, std::move(wide)))));
    }
    if (!narrow.empty()) {
        tile::Block rows{{tile::For{"m_half", 2, Level::unroll, only_existing_rows(stream, std::move(narrow))}}};
        block.push_back({tile::If{tile::variable("thread.rank") % 4 == 0, std::move(rows)}});
    }
    return block;
}

}  // namespace tilewright
