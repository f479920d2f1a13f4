#include <algorithm>
#include <iterator>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/rounding.h"
#include "lowering/passes/narrow_sum.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/dense_buffer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// Reads of a vector in place of the sum that it now holds.
class TakeSum : public hi::IRGraphMutator {
public:
    TakeSum(const Expr &lane, const NarrowSum &sum, const For &loop, const Launch &launch)
        : lane_(lane), sum_(sum), loop_(loop), launch_(launch) {}
    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *op) override { return is_sum(op) ? taken(op->type) : hi::IRGraphMutator::visit(op); }
    Expr visit(const hi::Cast *op) override { return is_sum(op) ? taken(op->type) : hi::IRGraphMutator::visit(op); }

private:
    bool is_sum(const Expr &e) const {
        const auto other = narrow_sum(e, loop_, launch_);
        return other && tilewright::is_same(*other, sum_);
    }
    Expr taken(const Halide::Type &type) const { return type.bits() == 16 ? lane_ : math::convert(type, lane_); }

    const Expr lane_;
    const NarrowSum sum_;
    const For &loop_;
    const Launch &launch_;
};

/// Whether an expression converts lanes of one of the sum's operands to floats, other than in the sum itself where that is passed over.
class FindConversion : public hi::IRGraphVisitor {
public:
    FindConversion(const NarrowSum &sum, const For &loop, const Launch &launch) : sum_(sum), loop_(loop), launch_(launch) {}
    bool operator()(const Expr &e, bool passes_sum) {
        passes_sum_ = passes_sum;
        e.accept(this);
        return found_;
    }

    using hi::IRGraphVisitor::visit;
    void visit(const hi::Call *op) override {
        if (!look(op)) {
            hi::IRGraphVisitor::visit(op);
        }
    }
    void visit(const hi::Cast *op) override {
        if (!look(op)) {
            hi::IRGraphVisitor::visit(op);
        }
    }

private:
    /// Whether `e` is to be passed over.
    bool look(const Expr &e) {
        const auto other = passes_sum_ ? narrow_sum(e, loop_, launch_) : std::nullopt;
        if (other && is_same(*other, sum_)) {
            return true;
        }
        const Expr narrow = converted(e);
        const auto *read = narrow.defined() ? narrow.as<hi::Call>() : nullptr;
        found_ = found_ || (read && (read->name == sum_.left.as<hi::Call>()->name || read->name == sum_.right.as<hi::Call>()->name));
        return false;
    }

    const NarrowSum &sum_;
    const For &loop_;
    const Launch &launch_;
    bool passes_sum_ = false, found_ = false;
};

/// Whether anything but the loop's sum wants its operands as floats: then they are converted anyway, and a sum of floats costs no more.
bool is_converted_elsewhere(const NarrowSum &sum, const For &loop, const Launch &launch) {
    bool result = false;
    visit_statements(launch.body, [&](const Statement &s) {
        const bool in_loop = std::any_of(loop.body.begin(), loop.body.end(), [&](const Statement &inner) { return &inner == &s; });
        for (const Expr &e : expressions_of(s)) {
            result = result || FindConversion(sum, loop, launch)(e, in_loop);
        }
    });
    return result;
}

/// The first sum of operands that no statement of the loop writes and that nothing else wants as floats.
class FindSum : public hi::IRGraphVisitor {
public:
    FindSum(const For &loop, const Launch &launch) : loop_(loop), launch_(launch) {
        for (const Statement &s : loop.body) {
            const std::vector<std::string> names = written_buffers(s);
            written_.insert(names.begin(), names.end());
        }
    }
    std::optional<NarrowSum> operator()() {
        for (const Statement &s : loop_.body) {
            for (const Expr &e : expressions_of(s)) {
                e.accept(this);
            }
        }
        return found_;
    }

    using hi::IRGraphVisitor::visit;
    void visit(const hi::Call *op) override {
        look(op);
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Cast *op) override {
        look(op);
        hi::IRGraphVisitor::visit(op);
    }

private:
    void look(const Expr &e) {
        const auto sum = found_ ? std::nullopt : narrow_sum(e, loop_, launch_);
        if (sum && !written_.contains(sum->left.as<hi::Call>()->name) && !written_.contains(sum->right.as<hi::Call>()->name) &&
            !is_converted_elsewhere(*sum, loop_, launch_)) {
            found_ = sum;
        }
    }

    const For &loop_;
    const Launch &launch_;
    std::set<std::string> written_;
    std::optional<NarrowSum> found_;
};

class Adder {
public:
    explicit Adder(Launch &launch) : launch_(launch) {}

    void run(Block &block) {
        for (std::size_t i = 0; i < block.size(); ++i) {
            const auto *loop = block[i].as<For>();
            if (loop && loop->level == Level::vector && loop->extent.is_constant() && loop->extent.value() % 2 == 0) {
                while (auto sums = taken_out(*block[i].as<For>())) {
                    block.insert(block.begin() + static_cast<std::ptrdiff_t>(i++), {std::move(*sums)});
                }
                if (block[i].as<For>()->body.empty()) {
                    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i--));
                }
            } else if (Block *body = body_of(block[i])) {
                run(*body);
            }
        }
    }

private:
    /// A loop of its own over the first sum of the loop whose operands are there before it; the loop reads what that leaves.
    std::optional<For> taken_out(For &loop) {
        if (!std::all_of(loop.body.begin(), loop.body.end(), [](const Statement &s) { return s.as<Store>() || s.as<tile::Fold>(); }) ||
            (loop.body.size() == 1 && loop.body[0].as<Store>() && narrow_sum(loop.body[0].as<Store>()->values[0], loop, launch_))) {
            return std::nullopt;
        }
        const auto sum = FindSum(loop, launch_)();
        if (!sum) {
            return std::nullopt;
        }
        Store store = stored_by_loop(loop, *sum);
        if (store.buffer.empty()) {
            store = {add_registers(*sum, loop), {tile::variable(loop.variable)}, {}};
        }
        const Halide::Type wide = Halide::Float(32);
        const Expr left = math::convert(wide, sum->left), right = math::convert(wide, sum->right);
        store.values = {math::convert(sum->left.type(), sum->minus ? left - right : left + right)};
        TakeSum take(tile::read(*launch_.find_buffer(store.buffer), store.indices), *sum, loop, launch_);
        for (Statement &s : loop.body) {
            for (Expr &e : s.as<Store>() ? s.as<Store>()->values : s.as<tile::Fold>()->terms) {
                e = take.mutate(e);
            }
        }
        return For{loop.variable, loop.extent, Level::vector, {{std::move(store)}}, false, false, loop.whole};
    }

    /// Registers of the sum's type for the lanes; their name.
    std::string add_registers(const NarrowSum &sum, const For &loop) {
        std::string name;
        for (int i = 0; name.empty() || launch_.find_buffer(name); ++i) {
            name = "sum" + std::to_string(i) + ".vec";
        }
        launch_.buffers.push_back(dense_buffer(name, {sum.left.type()}, Memory::registers, {loop.extent}));
        return name;
    }

    /// The store of the sum to a whole vector that nothing before it in the loop reads; it leaves the loop. Without a buffer where there is
    /// none.
    Store stored_by_loop(For &loop, const NarrowSum &sum) {
        for (auto s = loop.body.begin(); s != loop.body.end(); ++s) {
            const auto *store = s->as<Store>();
            const auto stored = store ? narrow_sum(store->values[0], loop, launch_) : std::nullopt;
            if (!stored || !tilewright::is_same(*stored, sum) ||
                !is_whole_vector(*launch_.find_buffer(store->buffer), store->indices, loop) || store->atomic) {
                continue;
            }
            const std::string buffer = store->buffer;
            const bool used_before = std::any_of(loop.body.begin(), s, [&](const Statement &other) { return uses_buffer(other, buffer); });
            const bool written_after = std::any_of(std::next(s), loop.body.end(), [&](const Statement &other) {
                const std::vector<std::string> names = written_buffers(other);
                return std::count(names.begin(), names.end(), buffer) > 0;
            });
            if (!used_before && !written_after) {
                Store result = *store;
                loop.body.erase(s);
                return result;
            }
        }
        return {};
    }

    Launch &launch_;
};

}  // namespace

void add_narrow_vectors(Launch &launch) { Adder(launch).run(launch.body); }

}  // namespace tilewright
