#include "lowering/cuda/cudnn_attention.h"

#include <algorithm>

#include "lowering/cuda/engine_match.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/operation.h"
#include "lowering/streaming/streaming_form.h"

namespace tilewright {

namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// An integer below its conversions.
Expr without_integer_conversions(Expr e) {
    for (Operation op = operation_of(e); op.name == "convert" && e.type().is_int() && op.operands[0].type().is_int();
         op = operation_of(e)) {
        e = op.operands[0];
    }
    return e;
}

class Matcher {
public:
    Matcher(const Kernel &kernel, StreamingForm form) : algorithm_(kernel.algorithm), form_(std::move(form)) {}

    GraphEngineStep match() {
        demand(form_.outputs.size() == 1 && algorithm_.outputs.size() == 1, "it has several outputs");
        find_axes();
        step_.operation = GraphEngineStep::Operation::attention;
        step_.scale = static_cast<float>(form_.scale);
        demand(reads(without_conversions(form_.score), form_.first), "its scores are changed before the softmax");
        match_masks();
        match_output();
        const Extent &rows = row_ < 0 ? one_ : second().extents[row_];
        add_operand(form_.query, form_.depth, row_ < 0 ? "" : form_.axes[row_], form_.depth_extent, rows);
        add_operand(form_.key, form_.depth, form_.streamed, form_.depth_extent, form_.streamed_extent);
        add_operand(form_.value, form_.axes[form_.column], form_.streamed, second().extents[form_.column], form_.streamed_extent);
        step_.tensors.push_back(engine_output(algorithm_, algorithm_.stages[form_.outputs[0]], {batch_[0], batch_[1], row_, form_.column}));
        return std::move(step_);
    }

private:
    const Stage &second() const { return algorithm_.stages[form_.second]; }
    bool reads(const Expr &e, int stage) const {
        const auto *call = e.as<hi::Call>();
        return call != nullptr && call->name == algorithm_.stages[stage].name();
    }
    /// A row's total, or 1 in its place where it is 0: no row has all of its keys masked.
    bool reads_total(const Expr &e) const {
        if (const Operation op = operation_of(e); op.name == "select") {
            const Operation test = operation_of(op.operands[0]);
            return test.name == "eq" && float_constant(test.operands[1]) == 0 && float_constant(op.operands[1]) == 1 &&
                   reads_total(op.operands[2]);
        }
        return std::any_of(form_.totals.begin(), form_.totals.end(), [&](int total) { return reads(without_conversions(e), total); });
    }

    /// Which axes are batch, heads and rows; where a tile's rows are heads that share keys, the row is an axis of one place.
    void find_axes() {
        row_ = form_.group == 0 ? form_.row : -1;
        for (int i = static_cast<int>(form_.axes.size()); i-- > 0;) {
            if (i != row_ && i != form_.column) {
                if (second().extents[i] == Extent(1) && row_ < 0) {
                    row_ = i;
                } else {
                    batch_.insert(batch_.begin(), i);
                }
            }
        }
        for (auto i = batch_.begin(); i != batch_.end();) {
            i = batch_.size() > 2 && second().extents[*i] == Extent(1) ? batch_.erase(i) : i + 1;
        }
        demand(batch_.size() <= 2, "it has more axes than batch and heads");
        batch_.insert(batch_.begin(), 2 - batch_.size(), -1);
    }

    void match_masks() {
        demand(form_.masks.size() <= 1, "its scores have several masks");
        if (form_.masks.empty()) {
            return;
        }
        const Operation op = operation_of(form_.masks[0]);
        const bool is_order = op.name == "le" || op.name == "ge";
        const int key = op.name == "le" ? 0 : 1;
        step_.causal = is_order && row_ >= 0 && as_variable(without_integer_conversions(op.operands[key])) == form_.streamed &&
                       as_variable(without_integer_conversions(op.operands[1 - key])) == form_.axes[row_];
        demand(step_.causal, "its mask is not the triangle under the diagonal");
    }

    /// The weighted sum over the total, once, before or after the second product.
    void match_output() {
        const Stage &stored = algorithm_.stages[form_.outputs[0]];
        demand(stored.extents == second().extents, "its output has another shape than attention");
        bool scaled = false;
        if (form_.row_factor.defined()) {
            const Operation op = operation_of(form_.row_factor);
            demand(op.name == "div" && float_constant(op.operands[0]) == 1 && reads_total(op.operands[1]),
                   "its weights are scaled in another way");
            scaled = true;
        }
        if (form_.outputs[0] != form_.second) {
            Expr value = without_conversions(
                expand_stages(algorithm_, stored.func.function().definition().values()[0], places_on_axes(stored, form_.axes)));
            if (const Operation op = operation_of(value); op.name == "div" && !scaled && reads_total(op.operands[1])) {
                value = without_conversions(op.operands[0]);
                scaled = true;
            }
            demand(reads(value, form_.second), "something is computed after its second product");
        }
        demand(scaled, "its weights are not divided by their sum");
    }

    /// Where an axis of the batch steps through the operand; heads that share a place are fewer there.
    void place_along(const StreamedOperand &operand, int axis, Extent &size, Extent &stride) const {
        const TensorMeta &meta = algorithm_.inputs[operand.input].meta;
        size = axis < 0 ? Extent(1) : second().extents[axis];
        stride = Extent(1);
        bool found = axis < 0 || size == Extent(1);
        for (std::size_t d = 0; !found && d < operand.indices.size(); d++) {
            const Operation op = operation_of(operand.indices[d]);
            const auto sharers = op.name == "div" ? hi::as_const_int(op.operands[1]) : std::nullopt;
            found = as_variable(sharers ? op.operands[0] : operand.indices[d]) == form_.axes[axis];
            if (found) {
                stride = meta.strides[d];
                size = sharers ? floor_div(size, Extent(*sharers)) : size;
            }
        }
        demand(found, "an operand is the same for all heads or images");
    }

    void add_operand(const StreamedOperand &operand, const std::string &inner, const std::string &outer, const Extent &columns,
                     const Extent &rows) {
        const TensorMeta &meta = algorithm_.inputs[operand.input].meta;
        EngineTensor tensor{
            operand.input, meta.dtype, {Extent(1), Extent(1), rows, columns}, {Extent(1), Extent(1), columns, Extent(1)}, 0};
        for (std::size_t d = 0; d < operand.indices.size(); d++) {
            const std::string variable = as_variable(operand.indices[d]);
            const Operation op = operation_of(operand.indices[d]);
            demand(!variable.empty() || op.name == "div" || hi::is_const_zero(operand.indices[d]), "an operand is read at computed places");
            if (variable == inner) {
                tensor.strides[3] = meta.strides[d];
            } else if (variable == outer) {
                tensor.strides[2] = meta.strides[d];
            }
        }
        for (int i = 0; i < 2; i++) {
            place_along(operand, batch_[i], tensor.sizes[i], tensor.strides[i]);
        }
        step_.tensors.push_back(tensor);
    }

    const Algorithm &algorithm_;
    const StreamingForm form_;
    const Extent one_ = 1;
    std::vector<int> batch_;  ///< axes of batch and heads; -1 for none
    int row_ = -1;
    GraphEngineStep step_;
};

}  // namespace

std::optional<GraphEngineStep> match_cudnn_attention(const Kernel &kernel, const GpuFacts &facts, std::string *why_not) {
    const auto match = [&] {
        std::optional<StreamingForm> form = match_streaming(kernel.algorithm, facts);
        demand(form.has_value(), "it is neither a convolution nor attention");
        return Matcher(kernel, std::move(*form)).match();
    };
    return match_or_reason(match, why_not);
}

}  // namespace tilewright
