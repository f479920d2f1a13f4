#include "tests/support/partitions.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"

namespace tilewright::tests {

Partition partition_of(const std::string &graph_lines, const FusionOptions &options) {
    const Translated translated = translate(program_from(graph_lines));
    Partition result = partition(translated.algorithm, options);
    for (const Kernel &kernel : result.kernels) {
        verify(kernel.algorithm);
    }
    return result;
}

std::string stages_of(const Partition &partition) {
    std::string text;
    for (const KernelCall &call : partition.calls) {
        text += text.empty() ? "" : " |";
        for (const Stage &stage : partition.kernels[call.kernel].algorithm.stages) {
            text += (text.empty() ? "" : " ") + stage.name();
        }
    }
    return text;
}

FusionDecision decision(const Partition &partition, const std::string &producer, const std::string &consumer) {
    for (const FusionDecision &decision : partition.decisions) {
        if (decision.producer == producer && decision.consumer == consumer) {
            return decision;
        }
    }
    FAIL("no decision about ", producer, " -> ", consumer);
    return {};
}

std::string softmax_lines(const std::string &x, const std::string &y, int rows, int columns) {
    return fmt::format(R"(%{1}_m : float32[{2}] = call_function prims.amax(a=%{0}, dims=[1])
%{1}_mb : float32[{2}, {3}] = call_function prims.broadcast_in_dim(a=%{1}_m, size=[{2}, {3}], dims=[0])
%{1}_s : float32[{2}, {3}] = call_function prims.sub(a=%{0}, b=%{1}_mb)
%{1}_e : float32[{2}, {3}] = call_function prims.exp(a=%{1}_s)
%{1}_t : float32[{2}] = call_function prims.sum(a=%{1}_e, dims=[1])
%{1}_tb : float32[{2}, {3}] = call_function prims.broadcast_in_dim(a=%{1}_t, size=[{2}, {3}], dims=[0])
%{1} : float32[{2}, {3}] = call_function prims.div(a=%{1}_e, b=%{1}_tb)
)",
                       x, y, rows, columns);
}

}  // namespace tilewright::tests
