#include "lowering/cpu_schedules/kernel_flow.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

namespace {

constexpr double expensive = 12;           ///< operations above which a value is kept rather than computed at each of several reads
constexpr double inline_limit = 400;       ///< operations that inlining may make of one value
constexpr std::size_t inlined_reads = 64;  ///< reads that inlining may make of one stage's

/// Rough operations of an expression, each distinct node once.
class OperationCount : public hi::IRGraphVisitor {
public:
    double count = 0;

private:
    using hi::IRGraphVisitor::visit;
    template<typename Op> void arithmetic(const Op *op) {
        count += 1;
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Add *op) override { arithmetic(op); }
    void visit(const hi::Sub *op) override { arithmetic(op); }
    void visit(const hi::Mul *op) override { arithmetic(op); }
    void visit(const hi::Min *op) override { arithmetic(op); }
    void visit(const hi::Max *op) override { arithmetic(op); }
    void visit(const hi::Select *op) override { arithmetic(op); }
    void visit(const hi::Div *op) override {
        count += 5;
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Mod *op) override {
        count += 5;
        hi::IRGraphVisitor::visit(op);
    }
    void visit(const hi::Call *op) override {
        const std::string_view primitive = math::primitive_name(op);
        if (!primitive.empty()) {
            count += cost_of(primitive);
        }
        // Places are integer arithmetic that loops share.
        if (op->call_type != hi::Call::Halide && op->call_type != hi::Call::Image) {
            hi::IRGraphVisitor::visit(op);
        } else {
            count += 1;
        }
    }
    static double cost_of(std::string_view primitive) {
        static const std::set<std::string_view> light = {
            "convert", "explicit_cast", "neg",   "abs",        "add",        "sub",     "mul",
            "minimum", "maximum",       "eq",    "ne",         "lt",         "le",      "gt",
            "ge",      "isnan",         "isinf", "isfinite",   "copysign",   "signbit", "floor",
            "ceil",    "trunc",         "round", "shift_left", "shift_right"};
        static const std::set<std::string_view> medium = {"sqrt", "rsqrt", "exp",   "exp2", "log",   "tanh",
                                                          "erf",  "expm1", "log1p", "log2", "log10", "checked_index"};
        return light.count(primitive) ? 1 : medium.count(primitive) ? 15 : 60;
    }
};

double operations(const std::vector<Expr> &expressions) {
    OperationCount counter;
    for (const Expr &e : expressions) {
        e.accept(&counter);
    }
    return counter.count;
}

bool same_indices(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return hi::graph_equal(x, y); });
}

void add_read(std::vector<Read> &reads, Read read) {
    for (const Read &known : reads) {
        if (known.producer == read.producer && known.tuple_index == read.tuple_index && same_indices(known.indices, read.indices)) {
            return;
        }
    }
    reads.push_back(std::move(read));
}

class Analysis {
public:
    explicit Analysis(const Kernel &kernel) : algorithm_(kernel.algorithm) {
        for (const TensorOutput &output : algorithm_.outputs) {
            outputs_.insert(output.stage);
        }
        for (const Stage &stage : algorithm_.stages) {
            forms_[stage.name()] = classify(stage);
        }
    }

    KernelFlow run() {
        find_direct_readers();
        for (const Stage &stage : algorithm_.stages) {
            decide(stage);
        }
        link_readers();
        place();
        return std::move(flow_);
    }

private:
    struct Inlined {
        std::vector<Read> reads;
        double cost = 0;
    };

    bool is_one_expression(const Stage &stage) const {
        const hi::Function function = stage.func.function();
        return !function.has_update_definition() && !function.has_extern_definition();
    }

    void find_direct_readers() {
        for (const Stage &stage : algorithm_.stages) {
            for (Read &read : reads_of(stage)) {
                if (!read.from_input) {
                    direct_[read.producer].push_back({&stage, read.indices});
                }
            }
        }
    }

    /// Keeps the stage or inlines it, when all that it reads is decided.
    void decide(const Stage &stage) {
        Inlined through;
        through.cost = 1 + operations(terms_of(stage));
        for (const Read &read : reads_of(stage)) {
            const auto producer = inlined_.find(read.producer);
            if (read.from_input || producer == inlined_.end()) {
                add_read(through.reads, read);
                continue;
            }
            through.cost += producer->second.cost;
            const hi::Function function = algorithm_.find_stage(read.producer)->func.function();
            for (const Read &inner : producer->second.reads) {
                add_read(through.reads, substituted(inner, function.args(), read.indices));
            }
        }
        if (is_kept(stage, through)) {
            KeptStage kept;
            kept.stage = &stage;
            kept.form = forms_.at(stage.name());
            kept.is_output = outputs_.count(stage.name()) > 0;
            kept.reads = std::move(through.reads);
            kept.cost = through.cost;
            flow_.kept.push_back(std::move(kept));
        } else {
            inlined_[stage.name()] = std::move(through);
        }
    }

    static Read substituted(const Read &inner, const std::vector<std::string> &arguments, const std::vector<Expr> &places) {
        Read result = inner;
        for (Expr &index : result.indices) {
            // First to fresh names: an argument of the reader may be called like one of the producer.
            for (std::size_t i = 0; i < arguments.size(); i++) {
                index = hi::graph_substitute(arguments[i], hi::Variable::make(Halide::Int(32), arguments[i] + "'"), index);
            }
            for (std::size_t i = 0; i < arguments.size(); i++) {
                index = hi::graph_substitute(arguments[i] + "'", places[i], index);
            }
        }
        return result;
    }

    bool is_kept(const Stage &stage, const Inlined &through) const {
        if (!is_one_expression(stage) || outputs_.count(stage.name())) {
            return true;
        }
        if (through.cost > inline_limit || through.reads.size() > inlined_reads) {
            return true;
        }
        const auto readers = direct_.find(stage.name());
        if (readers == direct_.end()) {
            return true;
        }
        const bool computes = through.cost > 3 + static_cast<double>(through.reads.size());
        for (const auto &[reader, indices] : readers->second) {
            switch (forms_.at(reader->name())) {
                case Form::sort:
                    return true;  // an extern stage reads memory
                case Form::contraction:
                    if (computes) {
                        return true;
                    }
                    break;
                case Form::window:
                    if (computes) {
                        return true;
                    }
                    break;
                default:
                    break;
            }
        }
        return readers->second.size() > 1 && through.cost > expensive && !read_at_one_place_by_one(readers->second);
    }

    struct DirectRead {
        const Stage *reader;
        std::vector<Expr> indices;
    };

    static bool read_at_one_place_by_one(const std::vector<DirectRead> &reads) {
        return std::all_of(reads.begin(), reads.end(), [&](const DirectRead &read) {
            return read.reader == reads.front().reader && same_indices(read.indices, reads.front().indices);
        });
    }

    void link_readers() {
        for (const KeptStage &reader : flow_.kept) {
            for (const Read &read : reader.reads) {
                for (KeptStage &producer : flow_.kept) {
                    if (!read.from_input && producer.stage->name() == read.producer &&
                        std::find(producer.readers.begin(), producer.readers.end(), reader.stage->name()) == producer.readers.end()) {
                        producer.readers.push_back(reader.stage->name());
                    }
                }
            }
        }
    }

    /// From the last stage backwards: a stage is computed inside the loops of the anchor's leading axes that all its readers run along.
    void place() {
        for (const KeptStage &kept : flow_.kept) {
            flow_.anchor = kept.is_output || kept.readers.empty() ? kept.stage : flow_.anchor;
        }
        for (auto kept = flow_.kept.rbegin(); kept != flow_.kept.rend(); ++kept) {
            if (kept->stage == flow_.anchor) {
                for (int i = 0; i < kept->stage->rank(); i++) {
                    kept->anchor_axes.push_back(i);
                }
                // Loops along a scan's or a scatter's own axes hold no stage of their own.
                const bool plain = kept->form == Form::pointwise || kept->form == Form::gather || kept->form == Form::reduction ||
                                   kept->form == Form::contraction || kept->form == Form::window;
                kept->depth = plain ? kept->stage->rank() : 0;
            } else {
                kept->anchor_axes = common_axes(*kept);
                kept->depth = kept->is_output || kept->form == Form::sort || kept->form == Form::scatter ? 0 : common_depth(*kept);
            }
        }
    }

    std::vector<int> common_axes(const KeptStage &kept) const {
        std::vector<int> axes;
        for (int argument = 0; argument < kept.stage->rank(); argument++) {
            int axis = -2;
            for (const std::string &name : kept.readers) {
                const KeptStage &reader = *flow_.find(name);
                const std::vector<std::string> variables = reader.stage->func.function().args();
                for (const Read &read : reader.reads) {
                    if (read.from_input || read.producer != kept.stage->name()) {
                        continue;
                    }
                    const auto *variable = read.indices[argument].as<hi::Variable>();
                    const auto found = variable ? std::find(variables.begin(), variables.end(), variable->name) : variables.end();
                    const int here =
                        found == variables.end() || reader.anchor_axes.empty() ? -1 : reader.anchor_axes[found - variables.begin()];
                    axis = axis == -2 || axis == here ? here : -1;
                }
            }
            axes.push_back(axis < 0 ? -1 : axis);
        }
        if (kept.form == Form::scan) {
            axes[match_fold(kept.stage->func)->scan_axis] = -1;  // each element needs those before it
        }
        return axes;
    }

    int common_depth(const KeptStage &kept) const {
        int depth = 0;
        while (std::find(kept.anchor_axes.begin(), kept.anchor_axes.end(), depth) != kept.anchor_axes.end()) {
            depth++;
        }
        for (const std::string &reader : kept.readers) {
            const KeptStage &found = *flow_.find(reader);
            depth = std::min(depth, found.is_output && found.stage != flow_.anchor ? 0 : found.depth);
        }
        return kept.readers.empty() ? 0 : depth;
    }

    const Algorithm &algorithm_;
    std::set<std::string> outputs_;
    std::map<std::string, Form> forms_;
    std::map<std::string, std::vector<DirectRead>> direct_;
    std::map<std::string, Inlined> inlined_;
    KernelFlow flow_;
};

}  // namespace

const KeptStage *KernelFlow::find(const std::string &name) const {
    for (const KeptStage &stage : kept) {
        if (stage.stage->name() == name) {
            return &stage;
        }
    }
    return nullptr;
}

KernelFlow analyse_flow(const Kernel &kernel) { return Analysis(kernel).run(); }

}  // namespace tilewright
