#include <algorithm>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/rounding.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

bool is_float32(const Halide::Type &type) { return type.is_float() && type.bits() == 32; }

Expr rounded(const Expr &wide) { return math::call(wide.type(), "rounded_to_bfloat16", {wide}); }

/// The float that `e` is the nearest bfloat16 of.
Expr before_bfloat16(const Expr &e) { return e.type().is_bfloat() ? before_rounding(e) : Expr(); }

/// Registers of bfloat16 and the floats that were rounded into them, as long as those still have their values.
class KeptFloats {
public:
    void wrote(const std::string &buffer) {
        std::erase_if(stores_, [&](const Store &s) {
            bool reads = s.buffer == buffer;
            visit_reads(s.values[0], [&](const hi::Call *call) { reads = reads || call->name == buffer; });
            return reads;
        });
    }
    void stored(const Store &store) { stores_.push_back(store); }
    Expr find(const hi::Call *read) const {
        for (const Store &store : stores_) {
            if (read->name == store.buffer && std::equal(read->args.begin(), read->args.end(), store.indices.begin(), store.indices.end(),
                                                         [](const Expr &a, const Expr &b) { return hi::graph_equal(a, b); })) {
                return store.values[0];
            }
        }
        return Expr();
    }

private:
    std::vector<Store> stores_;  ///< their values are the floats
};

/// float -> bfloat16 -> float, also by way of registers.
class RoundTrips : public hi::IRGraphMutator {
public:
    explicit RoundTrips(const KeptFloats &kept) : kept_(kept) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override { return shortened(hi::IRGraphMutator::visit(op)); }
    Expr visit(const hi::Cast *op) override { return shortened(hi::IRGraphMutator::visit(op)); }

private:
    Expr shortened(const Expr &e) const {
        const Expr narrow = is_float32(e.type()) ? converted(e) : Expr();
        if (!narrow.defined()) {
            return e;
        }
        const auto *read = narrow.as<hi::Call>();
        const Expr wide = read && read->call_type == hi::Call::Halide ? kept_.find(read) : before_bfloat16(narrow);
        return wide.defined() ? rounded(wide) : e;
    }
    const KeptFloats &kept_;
};

/// A loop over the lanes of a vector of 16-bit floats that folds them into their maximum or minimum and does nothing else: one fold of the
/// vector's own maximum or minimum. Lanes that each have an accumulator of their own (columns) stay as they are.
bool fold_at_once(const Launch &launch, Statement &s) {
    const auto *loop = s.as<For>();
    const auto *fold = loop && loop->body.size() == 1 ? loop->body[0].as<tile::Fold>() : nullptr;
    if (!fold || loop->level != Level::vector || !loop->extent.is_constant() || fold->terms.size() != 1 ||
        !is_float32(fold->terms[0].type())) {
        return false;
    }
    if (std::any_of(fold->place.begin(), fold->place.end(), [&](const Expr &e) { return hi::expr_uses_var(e, loop->variable); })) {
        return false;
    }
    const Combiner kind = launch.find_combiner(fold->combiner)->kind;
    const Expr narrow = converted(fold->terms[0]);
    const auto *read = narrow.defined() ? narrow.as<hi::Call>() : nullptr;
    if ((kind != Combiner::maximum && kind != Combiner::minimum) || !read || read->call_type != hi::Call::Halide ||
        !read->type.is_float() || read->type.bits() != 16) {
        return false;
    }
    const Buffer *buffer = launch.find_buffer(read->name);
    const auto *lane = read->args.empty() ? nullptr : read->args.back().as<hi::Variable>();
    if (buffer->memory != Memory::registers || buffer->types.size() != 1 || !lane || lane->name != loop->variable ||
        loop->extent.value() % 2 != 0) {
        return false;
    }
    std::vector<Expr> lanes;
    for (int i = 0; i < loop->extent.value(); ++i) {
        std::vector<Expr> place = read->args;
        place.back() = i;
        lanes.push_back(tile::read(*buffer, place));
    }
    tile::Fold whole = *fold;
    whole.terms[0] = math::convert(Halide::Float(32), math::call(read->type, kind == Combiner::maximum ? "largest" : "smallest", lanes));
    s = Statement{whole};
    return true;
}

class Packer {
public:
    explicit Packer(const Launch &launch) : launch_(launch) {}

    void run(Block &block) {
        KeptFloats kept;  // of this block: what stands in it follows what was stored in it
        for (Statement &s : block) {
            if (fold_at_once(launch_, s)) {
                continue;
            }
            if (auto *store = s.as<Store>()) {
                replace(store->values, kept);
            } else if (auto *fold = s.as<tile::Fold>()) {
                replace(fold->terms, kept);
            } else if (Block *body = body_of(s)) {
                run(*body);
            }
            visit_statements({s}, [&](const Statement &inner) {
                for (const std::string &name : written_buffers(inner)) {
                    kept.wrote(name);
                }
            });
            keep(s, kept);
        }
    }

private:
    static void replace(std::vector<Expr> &expressions, const KeptFloats &kept) {
        RoundTrips round_trips(kept);
        for (Expr &e : expressions) {
            e = round_trips.mutate(e);
        }
    }
    /// Who reads the registers rounds the float again: what is stored then waits to be converted two by two.
    void keep(const Statement &s, KeptFloats &kept) const {
        const auto *store = s.as<Store>();
        if (!store || store->values.size() != 1 || launch_.find_buffer(store->buffer)->memory != Memory::registers) {
            return;
        }
        const Expr wide = before_bfloat16(store->values[0]);
        if (wide.defined()) {
            kept.stored({store->buffer, store->indices, {wide}});
        }
    }

    const Launch &launch_;
};

}  // namespace

void pack_narrow_floats(Launch &launch) { Packer(launch).run(launch.body); }

}  // namespace tilewright
