#include "lowering/nests/lower_members.h"
#include "lowering/nests/staged_reads.h"

#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

void lower_value(NestWork &work, const Member &member) {
    const Stage &s = work.stage(member.stage);
    const hi::Function function = s.func.function();
    std::vector<Expr> values;
    for (const Expr &e : function.definition().values()) {
        values.push_back(work.stage_values.evaluate(e, member.environment, member.stage));
    }
    stage_reads(work, s, values);
    require_staged(work, s);
    if (work.is_read_in_nest(member.stage)) {
        const auto leaves = work.register_leaves(member.axes);
        const tile::Buffer buffer = work.register_buffer(s.name(), s.func.types(), leaves);
        Piece piece;
        piece.name = s.name();
        piece.loops = work.loops_of(member.axes);
        piece.needs = work.needs_of(values);
        const std::vector<Expr> guards = work.guards_of(member.axes);
        piece.body = [=] { return guarded(guards, {tile::Statement{tile::Store{buffer.name, place_in(leaves), values}}}); };
        work.piece_of[buffer.name] = work.add_piece(piece);
        work.stage_values.keep(member.stage, buffer, place_in(leaves));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = tile::read(buffer, place_in(leaves), static_cast<int>(i));
        }
    }
    work.add_stores(member, values);
}

}  // namespace tilewright
