// Makes a kernel's Funcs for one compilation by Halide: legal expressions, tensors with their strides, partial reductions and staged
// copies as the schedule asks. The kernel's own Funcs stay as they are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dsl/schedule/loop_nest.h"
#include "lowering/cpu/legalize.h"
#include "lowering/cpu/packed_input.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// One scheduled stage for Halide.
struct HalideStage {
    Halide::Func func;
    std::optional<Halide::Func> accumulator = {};   ///< computes what `func` only stores, a tile at a time
    std::map<std::string, std::int64_t> tile = {};  ///< elements of each axis that one computation covers, where constant
    std::vector<Halide::Func> companions = {};      ///< further Funcs with the loops and the place of `func`
    std::optional<Halide::Func> centre = {};        ///< a Func of the owner's arguments, in the same place
    std::optional<Halide::Func> padded = {};        ///< the window's input with its border
    std::vector<std::string> padded_reads = {};     ///< stages that `padded` depends on, through those of one expression
    bool is_fold_tree = false;  ///< a reduction over constantly many parts, written as one balanced expression: it has no reduction loop
};

struct HalideKernel {
    std::vector<Halide::Argument> arguments;  ///< tensors, then packed ones, then symbols, then the status pointer if `uses_status`
    std::vector<std::string> symbols;         ///< sorted
    bool uses_status = false;
    bool checks_divisors = false;       ///< no loop may be vectorised: lanes beyond an extent would find a zero there
    bool has_relaxed_products = false;  ///< some sum of products may be contracted to fused multiply-adds
    std::vector<Halide::Func> outputs;  ///< distinct pipeline outputs
    std::vector<int> output_order;      ///< kernel's output behind each of the pipeline's output buffers, in Halide's order
    std::vector<std::shared_ptr<const PackedInput>> packed;  ///< to be made before the kernel runs
    std::map<std::string, HalideStage> stages;               ///< by scheduled name
    std::set<std::string> results;                           ///< names of the Funcs that only copy a stage's value to an output
    std::set<std::string> copied;                            ///< the stages that they copy
};

HalideKernel build_kernel(const Kernel &kernel, const ScheduledKernel &scheduled);

}  // namespace tilewright
