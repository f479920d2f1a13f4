#include <algorithm>
#include <optional>
#include <set>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/expression.h"
#include "lowering/passes/launch_ranges.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

/// Registers with a dimension for each line, which shrinks to the one row that is held at a time.
struct Held {
    std::string name;
    std::size_t dimension;
};

class Slider {
public:
    Slider(Launch &launch, const SymbolRanges &symbols) : launch_(launch), ranges_(launch_ranges(launch, symbols)) {}

    void run(Block &block) {
        for (Statement &s : block) {
            if (auto *loop = s.as<For>();
                loop && loop->level == Level::loop && loop->extent.is_constant() && loop->extent.value() > 1 && slide(*loop)) {
                continue;
            }
            if (Block *body = body_of(s)) {
                run(*body);
            }
        }
    }

private:
    bool slide(For &taps) {
        tap_axis_ = axis_stepped_by(launch_, taps);
        if (!tap_axis_ || tap_axis_->leaves.size() != 1 || !tap_axis_->exact() || loops_over(taps.variable) != 1) {
            return false;
        }
        for (const Axis &axis : launch_.axes) {
            if (axis.leaves.empty() || axis.leaves.back().level != Level::unroll || !(axis.leaves.back().stride == Extent(1)) ||
                axis.leaves.back().extent.value() < 2) {
                continue;
            }
            line_axis_ = &axis;
            line_ = &axis.leaves.back();
            if (sort_statements(taps.body) && find_step()) {
                rewrite(taps);
                return true;
            }
        }
        return false;
    }

    int loops_over(const std::string &variable) const {
        int count = 0;
        visit_statements(launch_.body, [&](const Statement &s) {
            const auto *loop = s.as<For>();
            count += loop && loop->variable == variable;
        });
        return count;
    }

    /// What is loaded for each line, what is folded for each line, and what no line changes. Nothing else may stand in the loop.
    bool sort_statements(Block &body) {
        windows_.clear(), folds_.clear(), others_.clear(), held_.clear();
        for (Statement &s : body) {
            bool known = true, has_fold = false, has_line = false;
            visit_statements({s}, [&](const Statement &inner) {
                const auto *loop = inner.as<For>();
                known = known && (loop || inner.as<If>() || inner.as<Store>() || inner.as<tile::Fold>());
                has_fold = has_fold || inner.as<tile::Fold>();
                has_line = has_line || (loop && loop->variable == line_->name);
                for (const Expr &e : expressions_of(inner)) {
                    has_line = has_line || mentions_line(e);
                }
            });
            if (!known) {
                return false;
            }
            (has_fold ? folds_ : has_line ? windows_ : others_).push_back(s);
        }
        return !windows_.empty() && !folds_.empty() && holds_lines() && reads_stay_in_line();
    }
    bool mentions_line(const Expr &e) const { return mentions(e, line_->name) || mentions(e, line_axis_->name); }
    bool mentions_tap(const Expr &e) const { return mentions(e, tap_axis_->name) || mentions(e, tap_axis_->leaves[0].name); }

    /// Each store of a window goes to registers of its line, and loads from memory.
    bool holds_lines() {
        bool all = true;
        visit_statements(windows_, [&](const Statement &s) {
            const auto *store = s.as<Store>();
            if (!store) {
                return;
            }
            const auto at =
                std::find_if(store->indices.begin(), store->indices.end(), [&](const Expr &e) { return as_variable(e) == line_->name; });
            all = all && at != store->indices.end() && launch_.find_buffer(store->buffer)->memory == Memory::registers;
            for (const Expr &e : store->values) {
                visit_reads(e, [&](const hi::Call *call) { all = all && launch_.find_buffer(call->name)->memory != Memory::registers; });
            }
            if (all) {
                held_.push_back({store->buffer, static_cast<std::size_t>(at - store->indices.begin())});
            }
        });
        return all;
    }
    const Held *find_held(const std::string &name) const {
        const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held &h) { return h.name == name; });
        return found == held_.end() ? nullptr : &*found;
    }
    /// A line folds what was loaded for it, and nothing else reads that.
    bool reads_stay_in_line() const {
        bool all = true;
        const auto look = [&](const Block &block, bool folds) {
            visit_statements(block, [&](const Statement &s) {
                for (const Expr &e : expressions_of(s)) {
                    visit_reads(e, [&](const hi::Call *call) {
                        const Held *held = find_held(call->name);
                        all = all && (!held || (folds && as_variable(call->args[held->dimension]) == line_->name));
                    });
                }
            });
        };
        look(others_, false);
        look(folds_, true);
        return all;
    }

    Expr line_with(const Expr &line) const {
        Expr sum = line;
        for (const Leaf &leaf : line_axis_->leaves) {
            if (&leaf != line_ && !(leaf.extent == Extent(1))) {
                sum = sum + (leaf.stride == Extent(1) ? tile::variable(leaf.name) : tile::variable(leaf.name) * to_halide(leaf.stride));
            }
        }
        return sum;
    }
    Expr placed(const Expr &e, const Expr &line, const Expr &tap) const {
        return substitute_variables(
            e, {{line_axis_->name, line_with(line)}, {line_->name, line}, {tap_axis_->name, tap}, {tap_axis_->leaves[0].name, tap}});
    }

    /// What is loaded depends on step * line + tap alone.
    bool find_step() {
        constexpr std::int64_t largest = 4;
        for (step_ = 1; step_ <= largest; ++step_) {
            const Expr line = tile::variable(line_->name), tap = tile::variable(tap_axis_->leaves[0].name);
            bool alone = true, moves = false;
            visit_statements(windows_, [&](const Statement &s) {
                if (const auto *store = s.as<Store>()) {
                    for (const Expr &e : store->values) {
                        moves = moves || mentions_tap(e);
                        alone =
                            alone && hi::graph_equal(canonical_indices(placed(e, line, tap), ranges_),
                                                     canonical_indices(placed(e, Expr(0), line * static_cast<int>(step_) + tap), ranges_));
                    }
                }
            });
            if (alone && moves && step_ < tap_axis_->extent.value()) {
                return true;
            }
        }
        return false;
    }

    void rewrite(For &taps) {
        const int step = static_cast<int>(step_), count = static_cast<int>(tap_axis_->extent.value());
        const Leaf line = *line_;
        Axis rows;
        rows.name = tap_axis_->name + "_rows";
        rows.extent = step_ * (line.extent.value() - 1) + count;
        rows.leaves = {{rows.name + "_i", rows.extent, Level::loop, 1, 1}};
        const Expr row = tile::variable(rows.leaves[0].name), tap = row - tile::variable(line.name) * step;
        const Expr first_line = hi::Max::make(step == 1 ? row - (count - 1) : (row + (step - count)) / step, Expr(0));
        Block body;
        for (Statement &s : windows_) {
            for (Statement &loaded : at_row(s, row, first_line)) {
                body.push_back(std::move(loaded));
            }
        }
        Block folded;
        for (Block *part : {&others_, &folds_}) {
            for (Statement &s : *part) {
                for (Statement &of_line : at_line(s, tap)) {
                    folded.push_back(std::move(of_line));
                }
            }
        }
        body.push_back({For{line.name, line.extent, Level::unroll, {{If{tap >= 0 && tap < count, std::move(folded)}}}}});
        for (const Held &held : held_) {
            Buffer *buffer = launch_.find_buffer(held.name);
            buffer->extents[held.dimension] = 1;
            buffer->strides = contiguous_strides(buffer->extents);
        }
        taps = For{rows.leaves[0].name, rows.extent, Level::loop, std::move(body), true};
        *std::find_if(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &a) { return a.name == tap_axis_->name; }) = rows;
        ranges_[rows.leaves[0].name] = {0, rows.extent.value() - 1};
    }

    /// The row is loaded once, where the first line that wants it is inside: guards are upper bounds.
    Block at_row(const Statement &s, const Expr &row, const Expr &first_line) const {
        if (const auto *loop = s.as<For>()) {
            For copy = *loop;
            copy.body = at_row(loop->body, row, first_line);
            return loop->variable == line_->name ? copy.body : Block{{copy}};
        }
        if (const auto *guard = s.as<If>()) {
            return {{If{placed(guard->condition, first_line, row), at_row(guard->body, row, first_line)}}};
        }
        Store store = *s.as<Store>();
        const Held *held = find_held(store.buffer);
        store.indices[held->dimension] = 0;
        for (std::vector<Expr> *list : {&store.indices, &store.values}) {
            for (Expr &e : *list) {
                e = canonical_indices(placed(e, Expr(0), row), ranges_);
            }
        }
        return {{store}};
    }
    Block at_row(const Block &block, const Expr &row, const Expr &first_line) const {
        Block result;
        for (const Statement &s : block) {
            for (Statement &inner : at_row(s, row, first_line)) {
                result.push_back(std::move(inner));
            }
        }
        return result;
    }

    /// Reads of what is held lose the line: it is the row's.
    class ReadRow : public hi::IRGraphMutator {
    public:
        explicit ReadRow(const Slider &slider) : slider_(slider) {}
        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *op) override {
            const Held *held = op->call_type == hi::Call::Halide ? slider_.find_held(op->name) : nullptr;
            if (!held) {
                return hi::IRGraphMutator::visit(op);
            }
            std::vector<Expr> args = op->args;
            args[held->dimension] = 0;
            return hi::Call::make(op->type, op->name, args, op->call_type, op->func, op->value_index);
        }

    private:
        const Slider &slider_;
    };
    Block at_line(const Statement &s, const Expr &tap) const {
        const auto moved = [&](const Expr &e) {
            return ReadRow(*this).mutate(substitute_variables(e, {{tap_axis_->name, tap}, {tap_axis_->leaves[0].name, tap}}));
        };
        Block inner;
        if (const Block *body = body_of(s)) {
            for (const Statement &each : *body) {
                for (Statement &of_line : at_line(each, tap)) {
                    inner.push_back(std::move(of_line));
                }
            }
        }
        if (const auto *loop = s.as<For>()) {
            For copy = *loop;
            copy.body = inner;
            return loop->variable == line_->name ? inner : Block{{copy}};
        }
        if (const auto *guard = s.as<If>()) {
            return {{If{moved(guard->condition), inner}}};
        }
        if (const auto *fold = s.as<tile::Fold>()) {
            tile::Fold copy = *fold;
            std::transform(copy.terms.begin(), copy.terms.end(), copy.terms.begin(), moved);
            return {{copy}};
        }
        Store store = *s.as<Store>();
        std::transform(store.values.begin(), store.values.end(), store.values.begin(), moved);
        return {{store}};
    }

    Launch &launch_;
    VariableRanges ranges_;
    const Axis *tap_axis_ = nullptr, *line_axis_ = nullptr;
    const Leaf *line_ = nullptr;
    Block windows_, folds_, others_;
    std::vector<Held> held_;
    std::int64_t step_ = 1;
};

}  // namespace

void slide_windows(Launch &launch, const SymbolRanges &symbols) { Slider(launch, symbols).run(launch.body); }

}  // namespace tilewright
