#include "lowering/nests/operand_registers.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/nests/operand_tiles.h"
#include "lowering/nests/operand_window.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr std::int64_t most_terms = 128;  // of an operand that a thread keeps though nothing shares it

/// The register leaf along which what is read lies together in memory.
const tile::Leaf *vector_leaf(NestWork &work, const std::set<std::string> &axes, const Expr &value) {
    const tile::Leaf *found = nullptr;
    visit_reads(value, [&](const hi::Call *call) {
        const tile::Buffer *buffer = work.launch.find_buffer(call->name);
        for (std::size_t i = 0; buffer && !found && i < call->args.size(); ++i) {
            if (!(buffer->strides[i] == Extent(1))) {
                continue;
            }
            for (const std::string &name : variables_of(call->args[i])) {
                const tile::Axis *axis = axes.count(name) ? work.nest.find_axis(name) : nullptr;
                const tile::Leaf *last = axis && !axis->leaves.empty() ? &axis->leaves.back() : nullptr;
                const bool in_registers = last && (last->level == Level::unroll || last->level == Level::vector);
                if (in_registers && last->stride == Extent(1) && last->extent.is_constant() && last->extent.value() > 1) {
                    found = last;
                }
            }
        }
    });
    return found;
}
/// Conditions of a whole vector, and those of each element.
std::pair<std::vector<Expr>, std::vector<Expr>> operand_guards(NestWork &work, const std::set<std::string> &axes,
                                                               const tile::Leaf *vector) {
    std::vector<Expr> whole, each;
    for (const Expr &guard : work.guards_of(axes)) {
        const auto *less = guard.as<hi::LT>();
        const tile::Axis *axis = less ? work.nest.find_axis(as_variable(less->a)) : nullptr;
        const bool has_vector = axis && vector && &axis->leaves.back() == vector;
        if (has_vector && mod(axis->extent, vector->extent) == Extent(0)) {
            Expr first = 0;
            for (const tile::Leaf &leaf : axis->leaves) {
                first = &leaf == vector ? first : first + tile::variable(leaf.name) * to_halide(leaf.stride);
            }
            whole.push_back(simplify_index(first, work.nest.ranges) < less->b);
            continue;
        }
        const std::set<std::string> varying = work.axes_of(guard);
        const bool mentions_vector = vector && std::any_of(varying.begin(), varying.end(), [&](const std::string &name) {
                                         return &work.nest.find_axis(name)->leaves.back() == vector;
                                     });
        (mentions_vector ? each : whole).push_back(guard);
    }
    return {whole, each};
}

Expr kept_operand(NestWork &work, const Stage &s, const std::set<std::string> &axes, const Expr &value) {
    for (const auto &[known, read] : work.operands) {
        if (hi::graph_equal(known, value)) {
            return read;
        }
    }
    auto leaves = work.register_leaves(axes);
    const tile::Leaf *vector = vector_leaf(work, axes, value);
    std::stable_sort(leaves.begin(), leaves.end(), [&](const tile::Leaf *a, const tile::Leaf *b) { return (a == vector) < (b == vector); });
    const tile::Buffer buffer = work.register_buffer(s.name() + "_operand", {value.type()}, leaves);
    Piece piece;
    piece.name = buffer.name;
    piece.loops = work.serial_loops(axes);
    piece.needs = work.needs_of({value});
    const auto [whole, each] = operand_guards(work, axes, vector);
    const bool is_guarded = !whole.empty() || !each.empty();
    const auto loops = [=](tile::Block body, bool outside) {
        if (vector) {
            body = {tile::Statement{tile::For{vector->name, vector->extent, Level::vector, std::move(body)}}};
        }
        if (outside) {
            body = guarded(whole, std::move(body));
        }
        for (auto leaf = leaves.rbegin(); leaf != leaves.rend(); ++leaf) {
            if (*leaf != vector) {
                body = {tile::Statement{tile::For{(*leaf)->name, (*leaf)->extent, Level::unroll, std::move(body)}}};
            }
        }
        return body;
    };
    piece.body = [=] {
        const std::vector<Expr> place = place_in(leaves);
        tile::Block block;
        if (is_guarded) {
            block = loops({tile::Statement{tile::Store{buffer.name, place, {hi::make_zero(value.type())}}}}, false);
        }
        const tile::Block load = loops(guarded(each, {tile::Statement{tile::Store{buffer.name, place, {value}}}}), true);
        block.insert(block.end(), load.begin(), load.end());
        return block;
    };
    work.piece_of[buffer.name] = work.add_piece(piece);
    work.operands.emplace_back(value, tile::read(buffer, place_in(leaves)));
    return work.operands.back().second;
}

class Keep : public hi::IRGraphMutator {
public:
    Keep(NestWork &work, const Stage &stage, const std::set<std::string> &all, const std::set<std::string> &reduction_axes)
        : work_(work), stage_(stage), reduction_axes_(reduction_axes), all_(work.register_leaves(all).size()) {}
    using hi::IRGraphMutator::mutate;
    using hi::IRGraphMutator::visit;
    Expr mutate(const Expr &e) override {
        if (e.defined() && work_.reads_memory(e)) {
            const std::set<std::string> axes = work_.axes_of(e);
            if (work_.register_leaves(axes).size() < all_ || lies_along_terms(axes, e)) {
                const auto staged = staged_operand(work_, stage_, axes, e);
                return staged ? *staged : kept_operand(work_, stage_, axes, e);
            }
            if (const auto window = window_operand(work_, stage_, axes, e)) {
                return *window;
            }
        }
        return hi::IRGraphMutator::mutate(e);
    }
    // What stands under a condition or a name is not moved out of it.
    Expr visit(const hi::Select *op) override { return op; }
    Expr visit(const hi::Let *op) override { return op; }

private:
    /// One that no other factor shares still comes by vectors where memory runs along the terms that a thread holds.
    bool lies_along_terms(const std::set<std::string> &axes, const Expr &e) const {
        int reads = 0;
        visit_reads(e, [&](const hi::Call *) { ++reads; });
        const tile::Leaf *vector = reads == 1 ? vector_leaf(work_, axes, e) : nullptr;
        const std::set<std::string> terms = work_.leaves_at(reduction_axes_, {Level::unroll, Level::vector});
        Extent elements = 1;
        for (const tile::Leaf *leaf : work_.register_leaves(axes)) {
            elements = elements * leaf->extent;
        }
        return vector && terms.count(vector->name) && elements.is_constant() && elements.value() <= most_terms;
    }

    NestWork &work_;
    const Stage &stage_;
    const std::set<std::string> &reduction_axes_;
    std::size_t all_;
};

}  // namespace

bool keep_operands(NestWork &work, const Member &member, std::vector<Expr> &terms) {
    Keep keep(work, work.stage(member.stage), joined(member.axes, member.reduction_axes), member.reduction_axes);
    bool complete = true;
    for (Expr &term : terms) {
        term = keep.mutate(term);
        complete = complete && !work.reads_memory(term);
    }
    return complete;
}

}  // namespace tilewright
