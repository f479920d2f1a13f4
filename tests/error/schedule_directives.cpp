// Directives that do not fit their kernel, or each other: each is refused with its place, its cause and a repair.
#include <doctest/doctest.h>

#include "dsl/schedule/builder.h"
#include "tests/support/refusal.h"
#include "tests/support/schedule_kernels.h"

using namespace tilewright;

namespace {

std::string error_of(const std::string &text, const KernelAxes &kernel = tests::softmax_axes(),
                     ScheduleTarget target = ScheduleTarget::any) {
    return tests::refusal_of([&] { check_directives(kernel, parse_directives(text, "f"), target); });
}

}  // namespace

TEST_CASE("names that the kernel does not have") {
    CHECK(error_of("divid.parallel(r)") == "f:1:7: kernel 'softmax' has no stage 'divid'; did you mean divide?");
    CHECK(error_of("quotient.parallel(r)") ==
          "f:1:10: kernel 'softmax' has no stage 'quotient'; its stages are mask row_max exp row_sum divide");
    CHECK(error_of("x.parallel(r)") ==
          "f:1:3: 'x' is a tensor in memory; it has no loops; schedule the copy that a stage reads: x.in(STAGE)");
    CHECK(error_of("exp.in(mask).parallel(r)") == "f:1:14: stage 'mask' does not read 'exp'; it reads x");
    CHECK(error_of("divide.parallel(q)") == "f:1:17: stage 'divide' has no axis 'q'; its loops are r c");
    CHECK(error_of("mask.compute_at(divide, q)") == "f:1:6: stage 'divide' has no loop 'q'; its loops are r c");
    CHECK(error_of("divide.stream(c, row_mx)") == "f:1:18: kernel 'softmax' has no stage 'row_mx'; did you mean row_max?");
}

TEST_CASE("arguments of the wrong number or kind") {
    CHECK(error_of("divide.split(c, o, i)") == "f:1:8: split takes 4 arguments, not 3; write split(axis, outer, inner, factor)");
    CHECK(error_of("divide.reorder()") == "f:1:8: reorder takes at least 1 argument, not 0; write reorder(axes…)");
    CHECK(error_of("divide.split(c, o, i, 0)") == "f:1:23: argument 'factor' of split is 0; give a number from 1 to 1073741824");
    CHECK(error_of("divide.split(c, o, i, -4)") == "f:1:23: argument 'factor' of split is -4; give a number from 1 to 1073741824");
    CHECK(error_of("divide.split(c, o, i, r)") ==
          "f:1:23: argument 'factor' of split is a number, not 'r'; write split(axis, outer, inner, factor)");
    CHECK(error_of("divide.parallel(8)") == "f:1:17: argument 'axis' of parallel is a name, not the number 8; write parallel(axis)");
    CHECK(error_of("mask.store_in(cache)") == "f:1:15: 'cache' is no memory of store_in; use one of: register shared global");
    CHECK(error_of("divide.split(c, \"a b\", i, 8)") ==
          "f:1:17: 'a b' is no name for an axis; use letters, digits and '_', a letter first");
}

TEST_CASE("loops that are gone or taken") {
    CHECK(error_of("divide.split(c, o, i, 8).split(c, p, q, 4)") ==
          "f:1:32: axis 'c' of stage 'divide' was split already; name one of its parts, o or i");
    CHECK(error_of("divide.fuse(r, c, f).parallel(r)") == "f:1:31: axis 'r' of stage 'divide' was fused already; name the fused loop f");
    CHECK(error_of("divide.fuse(c, r, f)") ==
          "f:1:8: loop 'r' does not stand directly inside 'c'; reorder them first; the loops, outermost first, are r c");
    CHECK(error_of("divide.split(c, r, i, 8)") == "f:1:17: stage 'divide' has an axis 'r' already; choose another name");
    CHECK(error_of("divide.gpu_blocks(r).gpu_blocks(r)") ==
          "f:1:33: axis 'r' of stage 'divide' is bound to block already; an axis is bound once; split it first, or remove one of the two");
    CHECK(error_of("divide.reorder(r, r)") == "f:1:19: axis 'r' is named twice; name each axis once");
    CHECK(error_of("row_sum.split(j, jo, ji, 8).rfactor(ji, v).unroll(jo)") ==
          "f:1:51: axis 'jo' of stage 'row_sum' went to 'row_sum_partial' by rfactor; edit it there: row_sum_partial.unroll(…)");
}

TEST_CASE("combinations that are illegal") {
    CHECK(error_of("divide.compute_inline()") ==
          "f:1:8: stage 'divide' is an output of the kernel and cannot be inlined; remove compute_inline");
    CHECK(error_of("row_sum.compute_inline()") ==
          "f:1:9: stage 'row_sum' has an update and cannot be inlined; use compute_at or compute_root");
    CHECK(error_of("exp.compute_inline().unroll(c)") ==
          "f:1:5: stage 'exp' is inlined and has other directives; an inlined stage has no loops and no memory: remove compute_inline, or "
          "the others");
    CHECK(error_of("exp.compute_root().compute_at(divide, r)") ==
          "f:1:20: stage 'exp' has a place already; keep one of compute_at, compute_root and compute_inline");
    CHECK(error_of("divide.compute_at(exp, r)") ==
          "f:1:8: stage 'exp' does not depend on 'divide'; compute 'divide' at a loop of a stage that reads it");
    CHECK(error_of("row_sum.gpu_blocks(j)") ==
          "f:1:9: reduction axis 'j' of stage 'row_sum' is bound to block: its updates would race; use split_blocks, or cluster(x, y) with "
          "reduce_across(cluster), or add atomic()");
    CHECK(error_of("row_sum.gpu_threads(j)") ==
          "f:1:9: reduction axis 'j' of stage 'row_sum' is bound to thread and nothing combines the results; add reduce_across(warp) or "
          "reduce_across(block)");
    CHECK(error_of("divide.gpu_threads(r).gpu_blocks(c)") ==
          "f:1:23: block loop 'c' of stage 'divide' stands inside a thread loop; reorder: loops bound to blocks are outside those bound to "
          "threads");
    CHECK(error_of("mask.async_copy()") ==
          "f:1:6: stage 'mask' computes; only a staged copy can be made by a copy unit; put it on the copy of what the stage reads: "
          "TENSOR.in(mask)");
    CHECK(error_of("divide.rfactor(c, v)") ==
          "f:1:16: axis 'c' of stage 'divide' is no reduction axis; 'divide' reduces nothing; remove the directive");
    CHECK(error_of("divide.persistent().persistent()") == "f:1:21: persistent is given twice for stage 'divide'; remove one of them");
    CHECK(error_of("divide.vectorize(c)", tests::dynamic_softmax_axes()) ==
          "f:1:18: axis 'c' of stage 'divide' has the symbolic extent s0; split it by a constant and vectorize the inner part");
}

TEST_CASE("directives of another target") {
    CHECK(error_of("divide.gpu_blocks(r)", tests::softmax_axes(), ScheduleTarget::cpu) ==
          "f:1:8: gpu_blocks means nothing on target cpu; use parallel, vectorize and unroll there, or tune for this target");
    CHECK(error_of("divide.parallel(r)", tests::softmax_axes(), ScheduleTarget::cuda) ==
          "f:1:8: parallel means nothing on target cuda; use gpu_blocks and gpu_threads there, or tune for this target");
}

TEST_CASE("a schedule made in C++ is named by its directive") {
    ScheduleBuilder s;
    s["divide"].split("c", "o", "i", 0);
    CHECK_THROWS_WITH_AS(check_directives(tests::softmax_axes(), s.directives),
                         "divide.split(c, o, i, 0): argument 'factor' of split is 0; give a number from 1 to 1073741824", UserError);
}

TEST_CASE("an entry with symbolic extents needs an else") {
    const std::string text =
        "tilewright schedule 1\nmodel m graph 0\ntarget cpu\nkernel softmax algorithm 0123456789abcdef\nwhen divide.c <= 128\nend\n";
    const KernelSchedule entry = parse_schedule(text, "f").kernels[0];
    CHECK_THROWS_WITH_AS(
        check_entry(tests::dynamic_softmax_axes(), entry),
        "f:4:1: kernel 'softmax' has symbolic extents and no 'else'; add an 'else' with directives for the extents that no 'when' covers",
        UserError);
    CHECK_THROWS_WITH_AS(check_entry(tests::softmax_axes(), entry),
                         "f:4:1: no variant of kernel 'softmax' holds for these extents; add an 'else' with directives for the rest",
                         UserError);
}
