#include "dsl/schedule/directive_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

using enum ArgumentKind;
using enum DirectiveTarget;

std::vector<DirectiveSpec> make_table() {
    const ArgumentSpec one_axis{"axis", axis};
    const ArgumentSpec axes{"axes", axis, "", true};
    return {
        // Halide's: the shape of the loop nest.
        {"split",
         {one_axis, {"outer", new_axis}, {"inner", new_axis}, {"factor", count}},
         both,
         "split",
         "one loop becomes two: outer steps by the factor, inner runs over it",
         true},
        {"fuse", {{"outer", axis}, {"inner", axis}, {"fused", new_axis}}, both, "fuse", "two neighbouring loops become one", true},
        {"reorder", {axes}, both, "reorder", "the named loops change places, innermost first", true},
        {"tile",
         {{"x", axis}, {"y", axis}, {"xo", new_axis}, {"yo", new_axis}, {"xi", new_axis}, {"yi", new_axis}, {"fx", count}, {"fy", count}},
         both,
         "tile",
         "splits two loops and moves both outer parts outside both inner ones",
         true},
        {"align",
         {one_axis, {"n", count}},
         cuda,
         "",
         "vectors of n elements along the axis begin where the row's memory is aligned; what its two ends cut off goes element by element"},
        {"shift_inwards",
         {one_axis, {"n", count}},
         cuda,
         "",
         "the last vector of n elements along the axis ends with it, and computes again what the one before has"},
        {"unroll", {one_axis}, both, "unroll", "a loop of constant extent is written out", true},
        {"vectorize", {one_axis}, both, "vectorize", "a loop of constant extent becomes one wide operation", true},
        {"parallel", {one_axis}, cpu, "parallel", "iterations are spread over the CPU's cores", true},
        {"gpu_blocks", {axes}, cuda, "gpu_blocks", "loops become the grid; the first is blockIdx.x, at most three", true},
        {"gpu_threads", {axes}, cuda, "gpu_threads", "loops become a block's threads; the first is threadIdx.x, at most three", true},
        {"gpu_lanes", {one_axis}, cuda, "gpu_lanes", "a loop becomes the 32 lanes of a warp"},
        // Halide's: where a stage is computed and kept.
        {"compute_at",
         {{"stage", stage}, {"axis", stage_axis}},
         both,
         "compute_at",
         "the stage is computed inside that loop, as much as it reads"},
        {"compute_with",
         {{"stage", stage}, {"axis", stage_axis}},
         cuda,
         "compute_with",
         "the stage shares the loops of another that it does not feed, down to that axis: one pass over what both read"},
        {"compute_root", {}, both, "compute_root", "the stage is computed whole, before those that read it"},
        {"compute_inline", {}, both, "compute_inline", "the stage is computed wherever it is read"},
        {"store_in", {{"memory", keyword, "register shared global"}}, both, "store_in", "the memory that holds the stage"},
        {"rfactor",
         {{"axis", reduction_axis}, {"v", new_axis}},
         both,
         "rfactor",
         "partial results along the axis become a stage of their own, STAGE_partial",
         false},
        {"atomic", {}, both, "atomic", "updates of one element from several places are atomic; results may vary in their last bits"},
        // Ours: how a reduction is spread.
        {"reduce_across",
         {{"level", keyword, "thread warp block cluster"}},
         cuda,
         "",
         "the partial results of that many threads are combined"},
        {"split_blocks",
         {{"axis", reduction_axis}, {"n", count}},
         cuda,
         "",
         "a reduction is split over n blocks; a second pass combines what they leave"},
        {"sort_across", {{"level", keyword, "warp block grid"}}, cuda, "", "the threads of that group sort a row together"},
        {"preselect", {}, cuda, "", "what is among the first few of a row is found, and only that is sorted"},
        {"stream",
         {{"axis", axis}, {"reductions", stage, "", true}},
         cuda,
         "",
         "reductions that this one depends on are carried along the loop and rescaled as it goes (online softmax)"},
        // Ours: the grid.
        {"persistent", {}, cuda, "", "as many blocks as fit stay resident and take one piece of the grid after another"},
        {"launch_bounds", {{"threads", count}, {"blocks", count}}, cuda, "", "threads a block, and blocks a multiprocessor that must fit"},
        {"cluster", {{"x", count}, {"y", count}}, cuda, "", "so many neighbouring blocks run together and see each other's shared memory"},
        {"raster", {{"n", count}}, cuda, "", "blocks walk the grid in stripes n wide, so that the L2 cache is reused"},
        // Ours: copies.
        {"pipeline",
         {one_axis, {"stages", count}},
         cuda,
         "",
         "copies for later iterations of the loop are under way while it computes",
         true},
        {"async_copy", {}, cuda, "", "the staged copy goes past the registers (cp.async)"},
        {"bulk_copy", {}, cuda, "", "the staged copy is made by the bulk tensor copy unit"},
        {"multicast", {}, cuda, "", "one bulk copy feeds every block of the cluster that reads the same tile"},
        {"swizzle", {}, cuda, "", "the staged tile is stored permuted, so that neither rows nor columns conflict in shared memory"},
        // Ours: the matrix unit.
        {"tensor_core",
         {{"m", count}, {"n", count}, {"k", count}},
         cuda,
         "",
         "the contraction is done in tiles of this shape by the matrix unit"},
        {"precision", {{"type", keyword, "tf32"}}, cuda, "", "the matrix unit takes float32 operands as that type; the sums stay float32"},
        {"sum_apart", {}, cuda, "", "each step of the outermost loop over the terms is summed apart, then added to the others"},
        {"warpgroups", {{"n", count}}, cuda, "", "groups of four warps that share the multiplying"},
        {"producer_warps", {{"n", count}}, cuda, "", "warps that do nothing but copy"},
        {"hide_exponentials", {}, cuda, "", "exponentials of a step are taken while values of the step before are multiplied"},
        {"take_turns", {}, cuda, "", "one warpgroup multiplies while the others compute"},
        // Ours: what code is made.
        {"engine", {{"name", text}}, cuda, "", "a library computes the group that the stage stands in"},
    };
}

}  // namespace

const std::vector<DirectiveSpec> &directive_table() {
    static const std::vector<DirectiveSpec> table = make_table();
    return table;
}

const DirectiveSpec *find_directive(std::string_view name) {
    for (const DirectiveSpec &directive : directive_table()) {
        if (directive.name == name) {
            return &directive;
        }
    }
    return nullptr;
}

std::string signature(const DirectiveSpec &directive) {
    std::string text = std::string(directive.name) + "(";
    for (const ArgumentSpec &argument : directive.arguments) {
        if (text.back() != '(') {
            text += ", ";
        }
        if (argument.kind == ArgumentKind::keyword) {
            std::string words(argument.keywords);
            std::replace(words.begin(), words.end(), ' ', '|');
            text += words;
        } else {
            text += argument.name;
        }
        text += argument.repeated ? "…" : "";
    }
    return text + ")";
}

std::string help_directives() {
    std::string text;
    for (const DirectiveSpec &directive : directive_table()) {
        const char *where = directive.target == cpu ? "cpu" : directive.target == cuda ? "cuda" : "cpu cuda";
        text += fmt::format("{:<52} {:<9} {}\n", signature(directive), where, directive.meaning);
    }
    return text;
}

}  // namespace tilewright
