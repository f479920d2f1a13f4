// Each directive's effect on a small loop nest; every directive of the table has an example.
#include <doctest/doctest.h>

#include <map>

#include "dsl/atomic_file.h"
#include "dsl/schedule/directive_table.h"
#include "tests/support/golden.h"
#include "tests/support/schedule_kernels.h"

using namespace tilewright;

namespace {

/// The first stage named is the one that is printed, with all that is computed inside it.
const std::map<std::string, std::string> softmax_examples{
    {"split", "divide.split(c, co, ci, 8)"},
    {"fuse", "divide.fuse(r, c, rc)"},
    {"reorder", "divide.reorder(r, c)"},
    {"tile", "divide.tile(r, c, ro, co, ri, ci, 4, 128)"},
    {"unroll", "divide.split(c, co, ci, 4).unroll(ci)"},
    {"vectorize", "divide.split(c, co, ci, 8).vectorize(ci)"},
    {"parallel", "divide.parallel(r)"},
    {"gpu_blocks", "divide.gpu_blocks(r)"},
    {"gpu_threads", "divide.split(c, co, ci, 8).gpu_blocks(r).gpu_threads(co)"},
    {"gpu_lanes", "row_sum.split(j, jo, ji, 32).gpu_lanes(ji).reduce_across(warp)"},
    {"compute_at", "mask.compute_at(divide, r)"},
    {"compute_with", "row_sum.compute_with(row_max, r)"},
    {"compute_root", "mask.compute_root()"},
    {"compute_inline", "mask.compute_inline()"},
    {"store_in", "mask.compute_at(divide, r).store_in(register)"},
    {"rfactor", "row_sum.split(j, jo, ji, 8).rfactor(ji, v)\nrow_sum_partial.compute_at(row_sum, r).vectorize(v)"},
    {"atomic", "row_sum.split(j, jo, ji, 8).atomic().vectorize(ji)"},
    {"reduce_across", "row_sum.compute_at(divide, r).reduce_across(block)"},
    {"align", "row_sum.align(j, 8).split(j, jo, ji, 8)"},
    {"shift_inwards", "divide.shift_inwards(c, 8).split(c, co, ci, 8)"},
    {"split_blocks", "row_sum.split_blocks(j, 16)"},
    {"persistent", "divide.gpu_blocks(r).persistent()"},
    {"launch_bounds", "divide.gpu_blocks(r).gpu_threads(c).launch_bounds(256, 4)"},
    {"async_copy", "x.in(mask).compute_at(divide, r).store_in(shared).async_copy()"},
    {"swizzle", "x.in(mask).compute_at(divide, r).store_in(shared).swizzle()"},
};
const std::string tiles = "gelu.tile(m, n, mo, no, mi, ni, 128, 256).gpu_blocks(no, mo)\n";
const std::map<std::string, std::string> linear_examples{
    {"cluster", tiles + "gelu.cluster(2, 1)"},
    {"raster", tiles + "gelu.raster(8)"},
    {"pipeline", tiles + "dot.compute_at(gelu, no).split(k, ko, ki, 64).pipeline(ko, 4)"},
    {"bulk_copy", tiles + "dot.compute_at(gelu, no).split(k, ko, ki, 64)\nx.in(dot).compute_at(dot, ko).store_in(shared).bulk_copy()"},
    {"multicast",
     tiles + "dot.compute_at(gelu, no).split(k, ko, ki, 64)\nw.in(dot).compute_at(dot, ko).store_in(shared).bulk_copy().multicast()"},
    {"tensor_core", tiles + "dot.compute_at(gelu, no).store_in(register).tensor_core(64, 256, 16)"},
    {"precision", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 8).precision(tf32)"},
    {"sum_apart", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 32).sum_apart()"},
    {"warpgroups", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 16).warpgroups(2)"},
    {"producer_warps", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 16).producer_warps(1)"},
    {"take_turns", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 16).warpgroups(2).take_turns()"},
    {"hide_exponentials", tiles + "dot.compute_at(gelu, no).tensor_core(64, 256, 16).hide_exponentials()"},
    {"stream", tiles + "dot.compute_at(gelu, no).split(k, ko, ki, 64).stream(ko, gelu)"},
    {"engine", "dot.engine(\"cublaslt\")"},
};

const std::map<std::string, std::string> sort_examples{
    {"sort_across", "sort.sort_across(block).launch_bounds(256, 3)"},
    {"preselect", "sort.sort_across(block).preselect()"},
};

void check_example(const KernelAxes &kernel, const std::string &directive, const std::string &text) {
    const Directives directives = parse_directives(text, directive);
    const std::string printed = print(directives) + "\n" + print(apply_directives(kernel, directives));
    tests::check_golden("directives/" + directive + ".txt", printed);
}

}  // namespace

TEST_CASE("each directive changes the loop nest as its golden file says") {
    for (const DirectiveSpec &directive : directive_table()) {
        const std::string name(directive.name);
        CAPTURE(name);
        if (softmax_examples.count(name)) {
            check_example(tests::softmax_axes(), name, softmax_examples.at(name));
        } else if (sort_examples.count(name)) {
            check_example(tests::sort_axes(), name, sort_examples.at(name));
        } else {
            REQUIRE(linear_examples.count(name));
            check_example(tests::linear_axes(), name, linear_examples.at(name));
        }
    }
}

TEST_CASE("FORMAT.md shows what stood before and what stands after each directive") {
    const std::string format = read_file("dsl/schedule/FORMAT.md");
    for (const DirectiveSpec &directive : directive_table()) {
        const std::string name(directive.name);
        CAPTURE(name);
        const std::size_t row = format.find("\n| `" + name + "(");
        REQUIRE(row != std::string::npos);
        CHECK(format.substr(row, format.find('\n', row + 1) - row).find("→") != std::string::npos);
    }
}

TEST_CASE("the table prints as help") { tests::check_golden("directives/help.txt", help_directives()); }
