// What kind of loop nest a kernel wants, read off its algorithm alone: where default schedules and search spaces start from.
#pragma once

#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

enum class KernelShape {
    pointwise,    ///< no stage has an update
    rows,         ///< reductions over the innermost axes that share their rows, and what stands around them
    columns,      ///< reductions that keep the innermost axis
    mixed,        ///< both of one space
    contraction,  ///< one product (or several that share an operand), with prologue and epilogue
    window,
    streaming,  ///< two products joined by reductions along the first one's axis
    scan,
    sort,
    scatter,
};
std::string_view name(KernelShape shape);

/// How a stage stands in its kernel.
struct StageRole {
    std::string stage;
    Form form = Form::pointwise;
    bool is_output = false;
    /// One expression that costs no more to compute where it is read than to keep: a default schedule inlines it.
    bool is_inlined = false;
    /// For each argument of the stage, the axis of KernelShapeInfo::space that it runs along, or -1.
    std::vector<int> axes;
    /// For each reduction variable likewise.
    std::vector<int> reduction_axes;
};

struct KernelShapeInfo {
    KernelShape shape = KernelShape::pointwise;
    /// The stage that carries the whole space: the last output over it, or the reduction, product, scan itself where nothing follows.
    std::string anchor;
    /// The stage with the update that gives the kernel its shape; empty for pointwise. The last one where there are several.
    std::string heavy;
    /// The kernel's iteration space, outermost first, and which of its axes run in parallel (are rows) and which are reduced along.
    std::vector<Extent> space;
    std::vector<bool> is_reduced;
    std::vector<StageRole> stages;  ///< in the algorithm's order

    const StageRole &role(std::string_view stage) const;
};

/// For kernels of partition() and for algorithms that a user wrote.
KernelShapeInfo kernel_shape(const Algorithm &algorithm);

}  // namespace tilewright
