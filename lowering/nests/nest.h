// Which stages one launch computes together, over which axes, and how the axes are spread over the machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dsl/algorithm/combiner.h"
#include "dsl/schedule/loop_nest.h"
#include "lowering/fusion/kernel.h"
#include "lowering/passes/index_math.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// A stage whose value a nest keeps: in registers as its axes are spread, or in shared memory.
struct Member {
    int stage = -1;                    ///< index into the kernel's stages
    Substitution environment;          ///< the Func's arguments and RVars as expressions over the nest's axes
    std::vector<Halide::Expr> places;  ///< the arguments alone, in order
    std::set<std::string> axes;        ///< axes that the arguments depend on
    std::set<std::string> reduction_axes;
    bool in_shared = false;          ///< computed for a whole tile by all threads; `at_loops` say where
    std::set<std::string> at_loops;  ///< leaves outside of which nothing of the tile is computed
};

/// A serial, unrolled or vector leaf, in nesting order.
struct NestLoop {
    int axis = 0;
    int leaf = 0;
};

struct Nest {
    int anchor = -1;  ///< stage that gives the axes
    std::vector<tile::Axis> axes;
    std::vector<NestLoop> loops;                                         ///< outermost first; a vector leaf is last
    std::vector<Member> members;                                         ///< producers first; the anchor is one of them
    std::vector<std::pair<std::set<std::string>, Halide::Expr>> guards;  ///< conditions beyond axis < extent
    int threads = 1;
    Extent blocks = 1;
    int cluster = 1;
    int min_blocks = 0;
    VariableRanges ranges;  ///< of axes, leaves and symbols

    const tile::Axis *find_axis(const std::string &name) const;
    const Member *find_member(int stage) const;
    const tile::Leaf &leaf(const NestLoop &loop) const { return axes[loop.axis].leaves[loop.leaf]; }
};

/// Where each stage of a kernel is computed.
struct Placement {
    std::vector<Nest> nests;         ///< in execution order
    std::vector<int> nest_of;        ///< for each stage: nest that keeps it; -1 for an inlined one
    std::vector<std::string> notes;  ///< what was decided in place of what was asked, for `explain`
};

/// Reads the schedule into nests. UserError where a directive asks for what cannot be.
Placement place_stages(const Kernel &kernel, const ScheduledKernel &schedule, const GpuFacts &facts);

/// The right-hand sides that a stage folds or stores, with lets inlined: terms of a fold, else values.
std::vector<Halide::Expr> right_hand_sides(const Stage &stage);
/// Those and the initial values.
std::vector<Halide::Expr> definitions_of(const Stage &stage);
int stage_index(const Algorithm &algorithm, const std::string &name);
/// Of an argument or an RVar; negative for another name.
Extent extent_of(const Stage &stage, const std::string &variable);
/// A scan's variable, which runs along one of its arguments and has no axis of its own, and that argument.
std::optional<std::pair<std::string, std::string>> scan_variable(const Stage &stage);

}  // namespace tilewright
