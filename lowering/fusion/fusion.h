// Groups an algorithm's stages into kernels, with a reason for each edge that was fused and each that was not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/schedule/schedule.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

enum class FusionMode {
    search,  ///< what serves on most machines; the autotuner tries cuts and joins from there
    max,     ///< whatever may be fused is, whatever it costs
    none,    ///< one arithmetic stage a kernel; views still cost no copy
};

struct FusionOptions {
    FusionMode mode = FusionMode::search;
    /// Every intermediate is rounded to its own type as in eager mode: no pair of conversions is dropped.
    bool strict = false;
    /// Two products joined by row reductions (attention) become one kernel; also in mode max.
    bool streaming = false;
    /// Of such kernels, those that the target can compute in one pass over the columns; unset: all. The others stay apart.
    std::function<bool(const Algorithm &)> can_stream;
    /// Whether the target's matrix unit takes the product of such a kernel, or the product is too small to matter; unset: there is no such
    /// unit. What keeps a product off it is stored.
    std::function<bool(const Algorithm &)> multiplies;
    /// A product and the reductions along its rows become one kernel; also in mode max.
    bool finishes_rows = false;
    /// Of such kernels, those that the target computes at once, and well; unset: none. The others stay apart.
    std::function<bool(const Algorithm &)> can_finish_rows;
    /// Column sums share a kernel with rows of the same space; also in mode max.
    bool mixed = false;
    /// A kernel may read a second time what it has reduced and does not keep on the chip, as long columns; also in mode max.
    bool rereads = false;
    /// The longest columns that the target keeps on the chip between their reductions and what is made of them; 0: none.
    std::int64_t longest_held_column = 0;
    /// Products that share an operand and meet in one pointwise stage become one kernel; those of 16-bit types do in any mode but none.
    bool gating = false;
    /// Products of which every reader takes a piece of the columns are computed by pieces that meet in one kernel.
    bool split_columns = false;
    /// A kernel that would come out with this hash is taken apart after these of its stages (canonical names): their values are stored.
    std::map<Hash, std::vector<std::string>> cuts;
    /// Tensors that convolutions on a matrix unit multiply lie channels innermost: weights are repacked, intermediates stored so.
    bool channels_innermost = false;
    std::string reason_of_cuts = "the schedule cuts here";
    int largest_argument_count = 64;  ///< tensors that one kernel may read and write
};

/// Every stage that an output depends on is in at least one kernel; views and cheap values may be in several. Work is near-linear in the
/// number of stages.
Partition partition(const Algorithm &algorithm, const FusionOptions &options = {});

/// Ways to take a kernel apart that are worth measuring, each for FusionOptions::cuts; the most promising first.
std::vector<std::vector<std::string>> cuts_worth_trying(const Kernel &kernel);

/// The partition that a schedule file was made for, as far as the algorithm still has it: of the partitions that the options give with
/// and without their joins (streaming, mixed, gating, rereads, finishes_rows) and in the other modes, the one that has most of the file's
/// algorithms; kernels that are not in it are taken apart where the file has all the parts. With a file from another model this is
/// partition().
Partition partition_for(const Algorithm &algorithm, const FusionOptions &options, const ScheduleFile &file);

std::string print(const Partition &partition);
/// The decisions as lines "producer -> consumer: fused|apart, reason".
std::string print_decisions(const Partition &partition);
/// The same by kernels: one line for all that have the same kernels and the same reason, those apart first.
std::string print_decisions_by_kernel(const Partition &partition);

}  // namespace tilewright
