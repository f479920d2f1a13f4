#include "lowering/fusion/repack_inputs.h"

#include <fmt/format.h>

#include <set>

#include "lowering/fusion/channel_layout.h"
#include "lowering/fusion/storage_layout.h"

namespace tilewright {

namespace {

InputCopy permuted_copy(const TensorInput &from, const TensorMeta &to) {
    InputCopy result{from.name(), from.name() + ".repacked", {}};
    TensorMeta meta = from.meta;
    meta.offset = 0;  // counted from the tensor's element 0
    const TensorInput input{Halide::ImageParam(to_halide(to.dtype), to.rank(), "in0"), meta, "in0"};
    const std::vector<Halide::Var> arguments = argument_vars(to.rank());
    Halide::Func copy = named_func("copy");
    copy(arguments) = read(input.param, {arguments.begin(), arguments.end()});
    result.algorithm.inputs = {input};
    result.algorithm.stages = {Stage{copy, to.sizes, {}, "repack", ""}};
    result.algorithm.outputs = {TensorOutput{"out0", copy.name(), 0, to}};
    return result;
}

/// Symbols of the whole algorithm that the copy's sizes mention.
SymbolRanges symbols_of(const Algorithm &copy, const SymbolRanges &all) {
    std::set<std::string> used;
    for (const TensorMeta *meta : {&copy.inputs[0].meta, &copy.outputs[0].meta}) {
        for (const std::vector<Extent> *extents : {&meta->sizes, &meta->strides}) {
            for (const Extent &extent : *extents) {
                extent.collect_symbols(used);
            }
        }
    }
    SymbolRanges result;
    for (const std::string &symbol : used) {
        result.insert(*all.find(symbol));
    }
    return result;
}

}  // namespace

RepackedAlgorithm repack_inputs(const Algorithm &algorithm) {
    RepackedAlgorithm result{algorithm, {}};
    result.copies = widen_thin_channels(result.algorithm);
    const StageGraph graph(result.algorithm);
    const ChannelLayout layout(graph);
    std::vector<std::pair<std::size_t, TensorMeta>> changes;
    for (std::size_t i = 0; i < algorithm.inputs.size(); ++i) {
        const TensorMeta &meta = algorithm.inputs[i].meta;
        const std::vector<int> innermost = layout.innermost_of_input(static_cast<int>(i));
        if (!innermost.empty() && !lies_innermost(meta, innermost.back())) {
            const TensorMeta to = with_innermost(meta.dtype, meta.sizes, innermost);
            result.copies.push_back(permuted_copy(algorithm.inputs[i], to));
            changes.emplace_back(i, to);
        }
    }
    for (const auto &[input, meta] : changes) {
        result.algorithm.inputs[input].meta = meta;
    }
    return result;
}

void add_copies(Partition &partition, const RepackedAlgorithm &repacked) {
    std::vector<KernelCall> calls;
    std::map<std::string, int> known;
    for (const InputCopy &copy : repacked.copies) {
        const bool renames = copy.to == copy.from + ".repacked";
        bool is_read = false;
        for (KernelCall &call : partition.calls) {
            for (std::string &input : call.inputs) {
                if (input == (renames ? copy.from : copy.to)) {
                    input = copy.to;
                    is_read = true;
                }
            }
        }
        if (!is_read) {
            continue;
        }
        Kernel kernel;
        kernel.algorithm = copy.algorithm;
        kernel.algorithm.symbols = symbols_of(copy.algorithm, repacked.algorithm.symbols);
        kernel.hash = structural_hash(kernel.algorithm);
        const auto [place, is_new] = known.emplace(print(kernel.algorithm), static_cast<int>(partition.kernels.size()));
        if (is_new) {
            kernel.name = known.size() == 1 ? "repack" : fmt::format("repack_{}", known.size());
            partition.kernels.push_back(std::move(kernel));
        }
        KernelCall call;
        call.kernel = place->second;
        call.inputs = {copy.from};
        call.input_offsets = {Extent(0)};
        call.outputs = {copy.to};
        call.place = fmt::format("repack#{}", calls.size());
        calls.push_back(std::move(call));
        partition.intermediates.push_back({copy.to, copy.algorithm.outputs[0].meta});
    }
    partition.calls.insert(partition.calls.begin(), calls.begin(), calls.end());
}

}  // namespace tilewright
