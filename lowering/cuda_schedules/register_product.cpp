#include <algorithm>
#include <map>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda_schedules/register_tiles.h"
#include "lowering/cuda_schedules/schedule_draft.h"
#include "lowering/nests/stage_expansion.h"
#include "lowering/passes/index_math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

std::string argument(int i) { return "d" + std::to_string(i); }

/// How an operand is read: what it is computed from, or of several tensors the one that varies along most variables.
struct Reading {
    bool plain = false;        ///< that tensor is read at variables alone
    bool alone = false;        ///< and no other
    std::string fast, tensor;  ///< the variable along which it lies in memory
    int bytes = 4;
};
Reading reading_of(const Expr &operand, const Algorithm &algorithm) {
    Reading result;
    int reads = 0;
    std::size_t most = 0;
    visit_reads(operand, [&](const hi::Call *call) {
        std::size_t variables = 0;
        for (const Expr &place : call->args) {
            variables += place.as<hi::Variable>() ? 1 : 0;
        }
        ++reads;
        if (reads > 1 && variables <= most) {
            return;
        }
        most = variables;
        const TensorInput *input = algorithm.find_input(call->name);
        result = {input && variables == call->args.size(), false, "", call->name, call->type.bytes()};
        for (std::size_t i = 0; i < call->args.size(); ++i) {
            const auto *variable = call->args[i].as<hi::Variable>();
            const bool fast = input ? input->meta.strides[i] == Extent(1) : i + 1 == call->args.size();
            if (variable && fast) {
                result.fast = variable->name;
            }
        }
    });
    result.alone = result.plain && reads == 1;
    return result;
}

/// Extents of a stage along which it has more than one place.
std::vector<Extent> real_extents(const Stage &stage) {
    std::vector<Extent> extents;
    std::copy_if(stage.extents.begin(), stage.extents.end(), std::back_inserter(extents),
                 [](const Extent &e) { return !(e == Extent(1)); });
    return extents;
}

/// Whether `output` is computed from the product, always at its own place; axes of one place may be left out.
class Follower {
public:
    Follower(const Algorithm &algorithm, const std::string &product) : algorithm_(algorithm), product_(product) {}
    bool follows(const Stage &output) {
        std::vector<Expr> places;
        for (const std::string &name : output.func.function().args()) {
            places.push_back(hi::Variable::make(Halide::Int(32), name));
        }
        wanted_.clear();
        for (int i = 0; i < output.rank(); ++i) {
            if (!(output.extents[i] == Extent(1))) {
                wanted_.push_back(output.func.function().args()[i]);
            }
        }
        reads_ = false;
        return walk(output, places, 0) && reads_;
    }

private:
    bool walk(const Stage &stage, const std::vector<Expr> &places, int depth) {
        if (stage.func.function().has_update_definition() || stage.func.function().has_extern_definition() || depth > 64) {
            return depth > 0 && !depends(stage.name(), 0);
        }
        std::map<std::string, Expr> names;
        const std::vector<std::string> arguments = stage.func.function().args();
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            names[arguments[i]] = places[i];
        }
        for (const Read &read : reads_of(stage)) {
            if (read.from_input) {
                continue;
            }
            std::vector<Expr> at;
            for (const Expr &index : read.indices) {
                at.push_back(substitute_variables(index, names));
            }
            if (read.producer == product_) {
                reads_ = true;
                if (!stands_at(at)) {
                    return false;
                }
            } else if (const Stage *producer = algorithm_.find_stage(read.producer); !producer || !walk(*producer, at, depth + 1)) {
                return false;
            }
        }
        return true;
    }
    bool stands_at(const std::vector<Expr> &places) const {
        const Stage &product = *algorithm_.find_stage(product_);
        std::vector<std::string> names;
        for (int i = 0; i < product.rank(); ++i) {
            if (!(product.extents[i] == Extent(1))) {
                names.push_back(as_variable(places[i]));
            }
        }
        return names == wanted_;
    }
    bool depends(const std::string &reader, int depth) const {
        const Stage *stage = algorithm_.find_stage(reader);
        for (const Read &read : stage &&depth < 64 ? reads_of(*stage) : std::vector<Read>()) {
            if (!read.from_input && read.producer != reader && (read.producer == product_ || depends(read.producer, depth + 1))) {
                return true;
            }
        }
        return false;
    }

    const Algorithm &algorithm_;
    const std::string &product_;
    std::vector<std::string> wanted_;
    bool reads_ = false;
};

constexpr std::int64_t few_terms = 64;

/// Whether float32 sums leave the kernel as precise as they are.
bool keeps_sums(const Algorithm &algorithm, const Stage &stage) {
    const bool is_wide = std::any_of(algorithm.outputs.begin(), algorithm.outputs.end(),
                                     [](const TensorOutput &output) { return size_in_bytes(output.meta.dtype) > 2; });
    return is_wide && stage.func.types()[0] == Halide::Float(32);
}

/// Outputs other than the stage whose elements are those of the product, place by place.
std::vector<std::string> following_outputs(const Algorithm &algorithm, const Stage &stage, const std::string &name) {
    std::vector<std::string> outputs;
    Follower follower(algorithm, name);
    for (const TensorOutput &output : algorithm.outputs) {
        const Stage &other = *algorithm.find_stage(output.stage);
        const bool known = std::find(outputs.begin(), outputs.end(), output.stage) != outputs.end();
        if (output.stage != name && !known && real_extents(other) == real_extents(stage) && follower.follows(other)) {
            outputs.push_back(output.stage);
        }
    }
    return outputs;
}

bool varies_along(const Expr &operand, int argument_index) {
    const std::vector<std::string> names = variables_of(operand);
    return std::find(names.begin(), names.end(), argument(argument_index)) != names.end();
}

/// The argument along which memory runs, of those with more than one place.
int fastest_argument(const Stage &stage, const std::vector<int> &order) {
    const auto found = std::find_if(order.rbegin(), order.rend(), [&](int i) { return !(stage.extents[i] == Extent(1)); });
    return found == order.rend() ? order.back() : *found;
}

Extent product_of(const std::vector<Extent> &extents, const std::vector<int> &arguments) {
    Extent result = 1;
    for (int i : arguments) {
        result = result * extents[i];
    }
    return result;
}

/// Outer columns count as planes where the inner ones fill a tile.
void move_outer_columns(RegisterProduct &product, const Stage &stage, const SymbolRanges &symbols) {
    constexpr std::int64_t full = 512;
    while (product.columns.size() > 1 &&
           product_of(stage.extents, {product.columns.begin() + 1, product.columns.end()}).bounds(symbols).min >= full) {
        product.planes.push_back(product.columns.front());
        product.columns.erase(product.columns.begin());
    }
}

/// Rows are the left operand's own arguments, columns the right one's, planes those of both or none.
void share_out_arguments(RegisterProduct &product, const Algorithm &algorithm, const Stage &stage, const std::vector<int> &order,
                         const Expr &left, const Expr &right) {
    for (int i : order) {
        const bool a = varies_along(left, i), b = varies_along(right, i);
        (a == b ? product.planes : a ? product.rows : product.columns).push_back(i);
    }
    move_outer_columns(product, stage, algorithm.symbols);
    product.batch = product_of(stage.extents, product.planes);
    product.m = product_of(stage.extents, product.rows);
    product.n = product_of(stage.extents, product.columns);
    const auto rvars = stage.func.function().update(0).schedule().rvars();
    for (std::size_t i = 0; i < rvars.size(); ++i) {
        product.variables.push_back(rvars[i].var);
        product.terms.push_back(stage.reduction_extents[i]);
        product.k = product.k * stage.reduction_extents[i];
    }
}

void describe_operands(RegisterProduct &product, const Algorithm &algorithm, const Stage &stage, const Expr &left, const Expr &right) {
    const Reading l = reading_of(expand_stages(algorithm, left), algorithm), r = reading_of(expand_stages(algorithm, right), algorithm);
    const bool computed = reading_of(left, algorithm).tensor != l.tensor || reading_of(right, algorithm).tensor != r.tensor;
    product.rows_along_k = l.fast == product.variables[0];
    product.columns_along_k = r.fast == product.variables[0];
    product.streams = l.plain && r.plain && product.variables.size() == 1;
    product.direct = product.streams && l.alone && r.alone && !computed;
    product.sums_apart = keeps_sums(algorithm, stage) && product.k.bounds(algorithm.symbols).max > few_terms;
    product.row_tensor = l.tensor;
    product.column_tensor = r.tensor;
    product.row_bytes = l.bytes;
    product.column_bytes = r.bytes;
}

}  // namespace

std::int64_t most_places(const Extent &extent, const SymbolRanges &symbols) {
    return std::max<std::int64_t>(extent.bounds(symbols).max, 1);
}

std::optional<RegisterProduct> match_register_product(const Kernel &kernel, const std::string &name) {
    const Algorithm &algorithm = kernel.algorithm;
    const Stage &stage = *algorithm.find_stage(name);
    const auto fold = stage.func.function().has_update_definition() ? match_fold(stage.func) : std::nullopt;
    if (!fold || fold->combiner != Combiner::sum || fold->terms.size() != 1 || fold->scan_axis >= 0 || stage.rank() == 0) {
        return std::nullopt;
    }
    const Expr term = inline_lets(fold->terms[0]);
    const auto *product = term.as<hi::Mul>();
    if (!product || !contains_read(product->a) || !contains_read(product->b)) {
        return std::nullopt;
    }
    RegisterProduct result;
    result.stage = name;
    result.sum_bytes = stage.func.types()[0].bytes();
    result.outputs = following_outputs(algorithm, stage, name);
    const std::vector<int> order = memory_order(algorithm, stage, result.outputs);
    const int fast = fastest_argument(stage, order);
    const bool turned = varies_along(product->a, fast) && !varies_along(product->b, fast);
    const Expr left = turned ? product->b : product->a, right = turned ? product->a : product->b;
    share_out_arguments(result, algorithm, stage, order, left, right);
    describe_operands(result, algorithm, stage, left, right);
    return result;
}

}  // namespace tilewright
