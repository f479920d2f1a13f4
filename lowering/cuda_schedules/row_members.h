// The rows of a kernel: which axes of its space they run over, and which stages take a pass over a row together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowering/cuda_schedules/schedule_draft.h"

namespace tilewright {

/// The kernel's space as rows and what lies along them.
struct RowSpace {
    int rows = 0;                    ///< axes that are not reduced
    std::vector<std::string> names;  ///< the anchor's loop along each axis: rows first, in order, then what is reduced
    Extent count = 1, length = 1;    ///< of the rows
};

/// The innermost axis must be a reduced one, and the anchor must run along every axis that has several places; nothing where not.
std::optional<RowSpace> row_space(const Algorithm &algorithm, const KernelShapeInfo &info, const Stage &anchor);

/// The stages that take the pass with the anchor.
struct RowMembers {
    std::vector<const Stage *> stages;
    int kept = 0;          ///< values of the row that are held at once
    bool columns = false;  ///< sums over the rows share the pass
};

RowMembers row_members(const ScheduleDraft &draft, const Stage &anchor, const RowSpace &space);

/// Row values of a 16-bit type that several of the pass's stages would compute again, each from several stages: half a register an element
/// holds one.
std::vector<const Stage *> rounded_values(const ScheduleDraft &draft, const Stage &anchor, const RowMembers &members);

}  // namespace tilewright
