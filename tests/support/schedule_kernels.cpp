#include "tests/support/schedule_kernels.h"

namespace tilewright::tests {

namespace {

StageAxes tensor(const std::string &name, std::vector<NamedAxis> axes) {
    StageAxes stage;
    stage.name = name;
    stage.axes = std::move(axes);
    stage.is_input = true;
    return stage;
}

StageAxes stage(const std::string &name, std::vector<NamedAxis> axes, std::vector<NamedAxis> reduction, std::vector<std::string> reads) {
    StageAxes result;
    result.name = name;
    result.is_inlinable = reduction.empty();
    result.axes = std::move(axes);
    result.reduction_axes = std::move(reduction);
    result.reads = std::move(reads);
    return result;
}

KernelAxes softmax_of(const Extent &columns) {
    const NamedAxis r{"r", 8192}, c{"c", columns}, j{"j", columns};
    KernelAxes kernel;
    kernel.kernel = "softmax";
    kernel.stages = {tensor("x", {r, c}),
                     stage("mask", {r, c}, {}, {"x"}),
                     stage("row_max", {r}, {j}, {"mask"}),
                     stage("exp", {r, c}, {}, {"mask", "row_max"}),
                     stage("row_sum", {r}, {j}, {"exp"}),
                     stage("divide", {r, c}, {}, {"exp", "row_sum"})};
    kernel.stages.back().is_output = true;
    return kernel;
}

}  // namespace

KernelAxes softmax_axes() { return softmax_of(4096); }
KernelAxes dynamic_softmax_axes() { return softmax_of(Extent::symbol("s0")); }

KernelAxes linear_axes() {
    const NamedAxis m{"m", 512}, n{"n", 1024}, k{"k", 256};
    KernelAxes kernel;
    kernel.kernel = "linear_gelu";
    kernel.stages = {tensor("x", {{"d0", 512}, {"d1", 256}}), tensor("w", {{"d0", 256}, {"d1", 1024}}),
                     stage("dot", {m, n}, {k}, {"x", "w"}), stage("gelu", {m, n}, {}, {"dot"})};
    kernel.stages.back().is_output = true;
    return kernel;
}

KernelAxes sort_axes() {
    KernelAxes kernel;
    kernel.kernel = "topk";
    kernel.stages = {tensor("x", {{"d0", 64}, {"d1", 4096}}), stage("sort", {{"r", 64}, {"c", 50}}, {}, {"x"})};
    kernel.stages.back().is_output = true;
    kernel.stages.back().is_inlinable = false;
    return kernel;
}

}  // namespace tilewright::tests
