#include "lowering/cuda/engine_match.h"

#include "dsl/algorithm/expression.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/operation.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

void demand(bool condition, const char *why) {
    if (!condition) {
        throw NoMatch{why};
    }
}

int input_index(const Algorithm &algorithm, const std::string &name) {
    for (std::size_t i = 0; i < algorithm.inputs.size(); i++) {
        if (algorithm.inputs[i].name() == name || algorithm.inputs[i].param.name() == name) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

Expr without_conversions(Expr e) {
    for (Operation op = operation_of(e); is_float_conversion(e, op); op = operation_of(e)) {
        e = op.operands[0];
    }
    return e;
}

std::optional<PlainRead> plain_read(const Algorithm &algorithm, const Expr &e) {
    const auto *call = e.as<hi::Call>();
    PlainRead read;
    read.input = call != nullptr && is_read(call) ? input_index(algorithm, call->name) : -1;
    if (read.input < 0) {
        return std::nullopt;
    }
    const TensorMeta &meta = algorithm.inputs[read.input].meta;
    for (std::size_t d = 0; d < call->args.size(); d++) {
        const std::string variable = as_variable(call->args[d]);
        if (variable.empty() ? !hi::is_const_zero(call->args[d]) : !read.strides.emplace(variable, meta.strides[d]).second) {
            return std::nullopt;
        }
    }
    return read;
}

EngineTensor engine_tensor(const Algorithm &algorithm, const PlainRead &read, const std::vector<std::string> &axes,
                           const std::vector<Extent> &sizes) {
    const TensorMeta &meta = algorithm.inputs[read.input].meta;
    EngineTensor tensor{read.input, meta.dtype, {}, {}, 0};
    for (std::size_t i = 0; i < axes.size(); i++) {
        const auto stride = read.strides.find(axes[i]);
        const bool varies = stride != read.strides.end();
        tensor.sizes.push_back(varies ? sizes[i] : Extent(1));
        tensor.strides.push_back(varies ? stride->second : Extent(1));
    }
    return tensor;
}

EngineTensor engine_output(const Algorithm &algorithm, const Stage &stage, const std::vector<int> &dimensions) {
    const TensorMeta &meta = algorithm.outputs[0].meta;
    demand(meta.offset == Extent(0), "its output starts inside a tensor");
    EngineTensor tensor{static_cast<int>(algorithm.inputs.size()), meta.dtype, {}, {}, 0};
    for (const int d : dimensions) {
        tensor.sizes.push_back(d < 0 ? Extent(1) : stage.extents[d]);
        tensor.strides.push_back(d < 0 ? Extent(1) : meta.strides[d]);
    }
    return tensor;
}

}  // namespace tilewright
