#include "lowering/fusion/split_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/fusion/free_name.h"
#include "lowering/fusion/index_map.h"
#include "lowering/fusion/small_product.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::size_t most_pieces = 8, most_pieces_of_large = 2;
constexpr std::size_t longest_walk = 64;  // stages on the way to where the pieces meet

struct Piece {
    std::int64_t begin = 0, size = 0;
    auto operator<=>(const Piece &) const = default;
};

/// A product and what runs along it: for each stage the argument that counts the columns.
struct Columns {
    std::map<int, int> axes;  ///< by stage
    std::set<int> readers;    ///< stages that take pieces
    std::vector<Piece> pieces;
};

bool is_pointwise(const Stage &stage) {
    const Form form = classify(stage);
    return (form == Form::pointwise || form == Form::gather) && stage.func.outputs() == 1;
}

class ColumnFinder {
public:
    ColumnFinder(const Algorithm &algorithm, const std::vector<std::set<int>> &readers, const std::unordered_map<std::string, int> &places)
        : algorithm_(algorithm), readers_(readers), places_(places) {
        for (const TensorOutput &output : algorithm.outputs) {
            outputs_.insert(places.at(output.stage));
        }
    }

    std::optional<Columns> find(int product) const {
        const Stage &stage = algorithm_.stages[product];
        for (int axis = stage.rank() - 1; axis >= 0; --axis) {
            if (!stage.extents[axis].is_constant() || outputs_.count(product)) {
                continue;
            }
            if (auto columns = along(product, axis); columns && is_worth_it(stage, *columns)) {
                return columns;
            }
        }
        return std::nullopt;
    }

private:
    std::optional<Columns> along(int product, int axis) const {
        Columns columns;
        columns.axes[product] = axis;
        const Extent extent = algorithm_.stages[product].extents[axis];
        std::set<Piece> pieces;
        std::set<int> pending = readers_[product];
        while (!pending.empty()) {
            const int reader = *pending.begin();  // a stage stands after those it reads: all of them are known
            pending.erase(pending.begin());
            const auto taken = pieces_of(reader, columns);
            if (taken.empty()) {
                return std::nullopt;
            }
            const Piece whole{0, extent.value()};
            if (taken == std::map<Piece, int>{{whole, taken.begin()->second}} && !outputs_.count(reader)) {
                columns.axes[reader] = taken.begin()->second;
                pending.insert(readers_[reader].begin(), readers_[reader].end());
                continue;
            }
            columns.readers.insert(reader);
            for (const auto &[piece, argument] : taken) {
                pieces.insert(piece);
            }
        }
        columns.pieces.assign(pieces.begin(), pieces.end());
        return columns;
    }

    /// What a stage reads of the columns, and along which argument of its own; empty where some read is no piece.
    std::map<Piece, int> pieces_of(int reader, const Columns &columns) const {
        const Stage &stage = algorithm_.stages[reader];
        std::map<Piece, int> pieces;
        if (!is_pointwise(stage)) {
            return {};
        }
        const std::vector<std::string> arguments = stage.func.function().args();
        for (const Read &read : reads_of(stage)) {
            const auto place = places_.find(read.producer);
            if (read.from_input || place == places_.end() || !columns.axes.count(place->second)) {
                continue;
            }
            const int axis = columns.axes.at(place->second);
            const auto affine = contains_read(read.indices[axis]) ? std::nullopt : as_affine(read.indices[axis], arguments);
            const auto begin = affine ? hi::as_const_int(hi::simplify(affine->constant)) : std::nullopt;
            if (!begin || affine->terms.size() != 1 || affine->terms[0].second != 1) {
                return {};
            }
            const std::string &variable = affine->terms[0].first;
            for (std::size_t i = 0; i < read.indices.size(); ++i) {
                if (static_cast<int>(i) != axis && mentions(read.indices[i], variable)) {
                    return {};
                }
            }
            const auto argument = std::find(arguments.begin(), arguments.end(), variable) - arguments.begin();
            if (!stage.extents[argument].is_constant()) {
                return {};
            }
            const auto [known, is_new] = pieces.emplace(Piece{*begin, stage.extents[argument].value()}, static_cast<int>(argument));
            if (!is_new && known->second != argument) {
                return {};
            }
        }
        return pieces;
    }

    bool is_worth_it(const Stage &product, const Columns &columns) const {
        const std::size_t count = columns.pieces.size();
        if (count < 2 || count > (is_small_product(product, algorithm_.symbols) ? most_pieces : most_pieces_of_large)) {
            return false;
        }
        for (std::size_t i = 1; i < count; ++i) {
            const Piece &before = columns.pieces[i - 1];
            if (before.begin + before.size > columns.pieces[i].begin || before.size != columns.pieces[i].size) {
                return false;
            }
        }
        return meet(columns);
    }

    /// Whether some pointwise stage depends on every piece through pointwise stages alone.
    bool meet(const Columns &columns) const {
        std::map<Piece, std::set<int>> reached;
        for (int reader : columns.readers) {
            const std::set<int> below = followers(reader);
            for (const auto &[piece, argument] : pieces_of(reader, columns)) {
                reached[piece].insert(below.begin(), below.end());
            }
        }
        const std::set<int> &first = reached.begin()->second;
        return std::any_of(first.begin(), first.end(), [&](int stage) {
            return std::all_of(reached.begin(), reached.end(), [&](const auto &other) { return other.second.count(stage) != 0; });
        });
    }

    /// The stage and the pointwise stages of its size that depend on it.
    std::set<int> followers(int stage) const {
        std::set<int> found{stage};
        std::vector<int> pending{stage};
        while (!pending.empty() && found.size() < longest_walk) {
            const int at = pending.back();
            pending.pop_back();
            for (int reader : readers_[at]) {
                const bool same_size = product(algorithm_.stages[reader].extents) == product(algorithm_.stages[stage].extents);
                if (same_size && is_pointwise(algorithm_.stages[reader]) && found.insert(reader).second) {
                    pending.push_back(reader);
                }
            }
        }
        return found;
    }

    const Algorithm &algorithm_;
    const std::vector<std::set<int>> &readers_;
    const std::unordered_map<std::string, int> &places_;
    std::set<int> outputs_;
};

/// Puts a piece of each split stage in the place of the stage.
class PieceReader : public hi::IRGraphMutator {
public:
    /// `piece_of`: the piece's Func for a split stage and the column at which a read begins, and the axis of the columns.
    struct Target {
        int axis = 0;
        std::map<std::int64_t, hi::Function> pieces;
    };
    explicit PieceReader(const std::map<std::string, Target> &targets) : targets_(targets) {}

    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Call *call) override {
        const auto target = is_read(call) ? targets_.find(call->name) : targets_.end();
        if (target == targets_.end()) {
            return hi::IRGraphMutator::visit(call);
        }
        std::vector<Expr> indices;
        for (const Expr &index : call->args) {
            indices.push_back(mutate(index));
        }
        Expr &column = indices[target->second.axis];
        const std::vector<std::string> variables = variables_of(column);
        const auto affine = as_affine(column, variables);
        const std::int64_t begin = *hi::as_const_int(hi::simplify(affine->constant));
        column = hi::Variable::make(Halide::Int(32), affine->terms[0].first);
        return hi::Call::make(target->second.pieces.at(begin), indices, call->value_index);
    }

private:
    const std::map<std::string, Target> &targets_;
};

class ColumnSplitter {
public:
    explicit ColumnSplitter(const Algorithm &algorithm) : old_(algorithm), readers_(algorithm.stages.size()) {
        for (std::size_t i = 0; i < algorithm.stages.size(); ++i) {
            places_[algorithm.stages[i].name()] = static_cast<int>(i);
            names_.insert(algorithm.stages[i].name());
            for (const Read &read : reads_of(algorithm.stages[i])) {
                if (!read.from_input && places_.count(read.producer) && read.producer != algorithm.stages[i].name()) {
                    readers_[places_[read.producer]].insert(static_cast<int>(i));
                }
            }
        }
    }

    SplitColumns run() {
        const ColumnFinder finder(old_, readers_, places_);
        // The last first: of two products that are added, the one that others wait for is the later one.
        for (int i = static_cast<int>(old_.stages.size()) - 1; i >= 0; --i) {
            if (!is_product(old_.stages[i])) {
                continue;
            }
            if (const auto columns = finder.find(i); columns && is_new(*columns)) {
                for (const auto &[stage, axis] : columns->axes) {
                    split_[stage] = {axis, columns->pieces};
                }
                changed_.insert(columns->readers.begin(), columns->readers.end());
            }
        }
        result_.algorithm.inputs = old_.inputs;
        result_.algorithm.outputs = old_.outputs;
        result_.algorithm.symbols = old_.symbols;
        for (std::size_t i = 0; i < old_.stages.size(); ++i) {
            add(static_cast<int>(i));
        }
        return std::move(result_);
    }

private:
    struct Split {
        int axis = 0;
        std::vector<Piece> pieces;
    };

    /// Reads a product's operands through slices of their columns, so that it is a product still: read at single variables.
    class OperandSlicer : public hi::IRGraphMutator {
    public:
        OperandSlicer(ColumnSplitter &splitter, std::string part, const Stage &stage, std::string column, Piece piece)
            : splitter_(splitter), part_(std::move(part)), stage_(stage), column_(std::move(column)), piece_(piece) {}

        using hi::IRGraphMutator::visit;
        Expr visit(const hi::Call *call) override {
            const bool is_operand = is_read(call) && call->name != stage_.name();
            return is_operand && mentions(Expr(call), column_) ? slice(call) : hi::IRGraphMutator::visit(call);
        }

    private:
        Expr slice(const hi::Call *call) {
            const std::vector<Halide::Var> arguments = argument_vars(static_cast<int>(call->args.size()));
            Stage view = stage_;
            view.op = "prims.slice";
            view.extents = splitter_.extents_of(call->name);
            view.reduction_extents.clear();
            std::vector<Expr> places(arguments.begin(), arguments.end());
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (mentions(call->args[i], column_)) {
                    view.extents[i] = piece_.size;
                    places[i] = places[i] + static_cast<int>(piece_.begin);
                }
            }
            view.func = named_func(free_name(splitter_.names_, part_ + "_operand"));
            view.func(arguments) =
                hi::Call::make(call->type, call->name, places, call->call_type, call->func, call->value_index, call->image, call->param);
            splitter_.result_.original_names[view.name()] = stage_.name();
            splitter_.result_.algorithm.stages.push_back(view);
            return hi::Call::make(view.func.function(), call->args, 0);
        }

        ColumnSplitter &splitter_;
        const std::string part_;
        const Stage &stage_;
        const std::string column_;
        const Piece piece_;
    };

    std::vector<Extent> extents_of(const std::string &name) const {
        const TensorInput *input = old_.find_input(name);
        return input ? input->meta.sizes : old_.find_stage(name)->extents;
    }

    /// Sums of small products with constants count, too: a cell's first state may be zeros. All are read at single variables.
    bool is_product(const Stage &stage) const {
        const Form form = classify(stage);
        const auto is_plain = [](const Read &read) {
            return std::all_of(read.indices.begin(), read.indices.end(),
                               [](const Expr &index) { return index.as<hi::Variable>() || hi::is_const(index); });
        };
        const std::vector<Read> reads = form == Form::reduction ? reads_of(stage) : std::vector<Read>();
        return form == Form::contraction || (form == Form::reduction && stage.func.outputs() == 1 &&
                                             is_small_product(stage, old_.symbols) && std::all_of(reads.begin(), reads.end(), is_plain));
    }

    /// A stage that runs along two products (the sum of both) goes with the later of them; the other stays whole.
    bool is_new(const Columns &columns) const {
        const auto is_taken = [&](int stage) { return split_.count(stage) != 0 || changed_.count(stage) != 0; };
        return std::none_of(columns.axes.begin(), columns.axes.end(), [&](const auto &entry) { return is_taken(entry.first); }) &&
               std::none_of(columns.readers.begin(), columns.readers.end(), is_taken);
    }

    void add(int index) {
        const Stage &stage = old_.stages[index];
        if (const auto split = split_.find(index); split != split_.end()) {
            add_pieces(stage, split->second);
        } else if (changed_.count(index)) {
            Stage reader = stage;
            const hi::Function function = stage.func.function();
            reader.func = named_func(stage.name());
            std::vector<Halide::Var> arguments(function.args().begin(), function.args().end());
            reader.func(arguments) = PieceReader(targets_).mutate(inline_lets(function.values())[0]);
            result_.algorithm.stages.push_back(reader);
        } else {
            result_.algorithm.stages.push_back(stage);
        }
    }

    void add_pieces(const Stage &stage, const Split &split) {
        const hi::Function function = stage.func.function();
        std::map<std::int64_t, hi::Function> made;
        for (const Piece &piece : split.pieces) {
            Stage part = stage;
            part.extents[split.axis] = piece.size;
            part.func = named_func(free_name(names_, fmt::format("{}_piece_{}", stage.name(), made.size())));
            const std::string &column = function.args()[split.axis];
            const std::map<std::string, Expr> moved{{column, hi::Variable::make(Halide::Int(32), column) + static_cast<int>(piece.begin)}};
            std::vector<Halide::Var> arguments(function.args().begin(), function.args().end());
            part.func(arguments) = PieceReader(targets_).mutate(bind_variables(inline_lets(function.values())[0], moved));
            if (function.has_update_definition()) {
                OperandSlicer slicer(*this, part.name(), stage, column, piece);
                const Expr sliced = slicer.mutate(inline_lets(function.update(0).values())[0]);
                const std::map<std::string, PieceReader::Target> own{{stage.name(), {split.axis, {{0, part.func.function()}}}}};
                part.func.function().define_update({arguments.begin(), arguments.end()}, {PieceReader(own).mutate(sliced)});
            }
            made.emplace(piece.begin, part.func.function());
            result_.original_names[part.name()] = stage.name();
            result_.algorithm.stages.push_back(part);
        }
        targets_[stage.name()] = {split.axis, std::move(made)};
    }

    const Algorithm &old_;
    SplitColumns result_;
    std::vector<std::set<int>> readers_;
    std::unordered_map<std::string, int> places_;
    std::set<std::string> names_;
    std::map<int, Split> split_;
    std::set<int> changed_;
    std::map<std::string, PieceReader::Target> targets_;
};

}  // namespace

SplitColumns split_columns(const Algorithm &algorithm) { return ColumnSplitter(algorithm).run(); }

}  // namespace tilewright
