#include "autotune/measure/roofline.h"

#include <algorithm>
#include <map>

#include "dsl/algorithm/analysis.h"

namespace tilewright {
namespace {

double count(const std::vector<Extent> &extents, const SymbolValues &symbols) {
    double elements = 1;
    for (const Extent &extent : extents) {
        elements *= static_cast<double>(extent.evaluate(symbols));
    }
    return elements;
}

/// Elements in memory: an axis of stride 0 repeats the same ones.
double stored(const TensorMeta &meta, const SymbolValues &symbols) {
    double elements = 1;
    for (int i = 0; i < meta.rank(); ++i) {
        elements *= meta.strides[i] == Extent(0) ? 1 : static_cast<double>(meta.sizes[i].evaluate(symbols));
    }
    return elements;
}

bool is_half(DType type) { return type == DType::float16 || type == DType::bfloat16; }

}  // namespace

Roofline roofline(const Algorithm &algorithm, const SymbolValues &symbols, const GpuFacts &facts) {
    Roofline result;
    std::map<std::string, double> reads;  // of each input; a gather reads a part of its table
    for (const Stage &stage : algorithm.stages) {
        const double terms = count(stage.extents, symbols) * count(stage.reduction_extents, symbols);
        for (const Read &read : reads_of(stage)) {
            if (read.from_input) {
                reads[read.producer] += terms;
            }
        }
        const Form form = classify(stage);
        if (form == Form::contraction || form == Form::window) {
            const bool half =
                std::any_of(algorithm.inputs.begin(), algorithm.inputs.end(), [](const TensorInput &i) { return is_half(i.meta.dtype); });
            (half ? result.matrix_flops : result.float_flops) += 2 * terms;  // the matrix unit takes windows too
        }
    }
    for (const TensorInput &input : algorithm.inputs) {
        result.bytes += size_in_bytes(input.meta.dtype) * std::min(stored(input.meta, symbols), reads[input.name()]);
    }
    for (const TensorOutput &output : algorithm.outputs) {
        result.bytes += size_in_bytes(output.meta.dtype) * stored(output.meta, symbols);
    }
    result.seconds =
        std::max({result.bytes / facts.memory_bandwidth, result.matrix_flops / facts.half_flops, result.float_flops / facts.float_flops});
    return result;
}

}  // namespace tilewright
