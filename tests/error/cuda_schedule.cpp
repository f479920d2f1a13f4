// Schedules that the CUDA lowering cannot carry out: each is refused with its cause and a repair.
#include <doctest/doctest.h>

#include "dsl/schedule/at_entry.h"
#include "dsl/schedule/builder.h"
#include "lowering/cuda/lower.h"
#include "tests/support/cpu_kernel.h"
#include "tests/support/emulated_kernel.h"
#include "tests/support/refusal.h"

using namespace tilewright;
using tests::says;

namespace {

/// Rows of x divided by their sum.
Kernel row_shares() {
    tests::KernelBuilder builder("row_shares");
    const Halide::ImageParam x = builder.input("x", DType::float32, {8, 64});
    const std::vector<Halide::Var> arguments = argument_vars(2);
    Halide::Func total = named_func("total"), share = named_func("share");
    const Halide::RDom terms = reduction_domain({64});
    define_reduction(total, {arguments[0]}, Combiner::sum, {read(x, {arguments[0], terms[0]})}, terms);
    share(arguments) = read(x, {arguments[0], arguments[1]}) / total(arguments[0]);
    builder.stage(total, {8}, {64});
    builder.stage(share, {8, 64});
    builder.output("share");
    return builder.finish();
}

/// Columns of x divided by their sum.
Kernel column_shares() {
    tests::KernelBuilder builder("column_shares");
    const Halide::ImageParam x = builder.input("x", DType::float32, {64, 32});
    const std::vector<Halide::Var> arguments = argument_vars(2);
    Halide::Func total = named_func("total"), share = named_func("share");
    const Halide::RDom terms = reduction_domain({64});
    define_reduction(total, {arguments[0]}, Combiner::sum, {read(x, {terms[0], arguments[0]})}, terms);
    share(arguments) = read(x, {arguments[0], arguments[1]}) / total(arguments[1]);
    builder.stage(total, {32}, {64});
    builder.stage(share, {64, 32});
    builder.output("share");
    return builder.finish();
}

std::string refusal(const Directives &directives, const Kernel &kernel = row_shares()) {
    return tests::refusal_of([&] { lower_cuda(kernel, directives, gpu_facts("sm_90a")); });
}

}  // namespace

TEST_CASE("a directive of the matrix unit without a product") {
    ScheduleBuilder s;
    s["share"].gpu_blocks("d0").raster(2);
    CHECK(says(refusal(s.directives), "share.raster(2): it serves a product on the matrix unit, and this kernel has none; remove it"));
}

TEST_CASE("a cluster of other blocks than the first block loops") {
    ScheduleBuilder s;
    s["share"].gpu_blocks("d0").cluster(2, 1);
    CHECK(says(refusal(s.directives),
               "share.cluster(2, 1): the first loops of gpu_blocks do not run over that many blocks; split a loop by the cluster's size"));
}

TEST_CASE("a reduction as a tile in shared memory") {
    ScheduleBuilder s;
    s["share"].gpu_blocks("d0").gpu_threads("d1");
    s["total"].compute_at("share", "d0").store_in("shared");
    CHECK(says(refusal(s.directives),
               "total: a tile in shared memory is computed place by place, and this stage is a reduction; store it in registers or compute "
               "it at the root"));
}

TEST_CASE("loops that are shared in a circle, with themselves, or with a stage that has none") {
    ScheduleBuilder circle;
    circle["share"].compute_with("total", "d0");
    circle["total"].compute_at("share", "d0");
    CHECK(says(refusal(circle.directives),
               "are computed in each other's loops, in a circle; remove one of their directives compute_at and compute_with"));
    ScheduleBuilder own;
    own["share"].compute_with("share", "d0");
    CHECK(says(refusal(own.directives), "share.compute_with(share, d0): the stage cannot share loops with itself; name another stage"));
    ScheduleBuilder missing;
    missing["share"].compute_with("total", "d7");
    CHECK(says(refusal(missing.directives), "stage 'total' has no loop 'd7'; its loops are d0 r0"));
}

TEST_CASE("more blocks than there are terms to share") {
    ScheduleBuilder s;
    s["total"].split_blocks("r0", 65536);
    CHECK(
        says(refusal(s.directives),
             "total.split_blocks(r0, 65536): loop 'r0' has 64 iterations, fewer than the blocks that are to share them; give 64 or fewer"));
}

TEST_CASE("launch_bounds of another count of threads, or where there is no launch") {
    ScheduleBuilder s;
    s["share"].gpu_blocks("d0").gpu_threads("d1").launch_bounds(128, 2);
    s["total"].compute_at("share", "d0");
    CHECK(says(
        refusal(s.directives),
        "share.launch_bounds(128, 2): its loops ask for 64 threads a block; write launch_bounds(64, 2), or bind other loops to threads"));
    ScheduleBuilder inside;
    inside["share"].gpu_blocks("d0").gpu_threads("d1");
    inside["total"].compute_at("share", "d0").launch_bounds(64, 2);
    CHECK(says(refusal(inside.directives),
               "total.launch_bounds(64, 2): the stage is computed in the launch of 'share'; give launch_bounds to 'share'"));
}

TEST_CASE("a reduction along threads that have an element each") {
    ScheduleBuilder s;
    s["share"].gpu_blocks("d0").gpu_threads("d1");
    s["total"].compute_at("share", "d0").gpu_threads("r0").reduce_across("block");
    CHECK(says(
        refusal(s.directives, column_shares()),
        "is bound to the threads that loop 'd1_i' runs over, each of which has an element of its own; leave the reduction's loops serial"));
    CHECK(refusal(s.directives) == "");
}

TEST_CASE("more threads than a block has") {
    ScheduleBuilder s;
    s["share"].gpu_threads("d1", "d0").reorder("d1", "d0");
    CHECK(refusal(s.directives) == "");
    ScheduleBuilder wide;
    wide["share"].split("d0", "o", "i", 64).gpu_threads("d1", "i").gpu_blocks("o");
    CHECK(says(refusal(wide.directives), "its loops ask for 4096 threads a block; there are at most 1024; split by smaller factors"));
}

TEST_CASE("directives of a stage that has no loops of its own") {
    const Kernel kernel = tests::kernels_from(
                              "%x : float32[8, 1024] = placeholder\n"
                              "%a : float32[8, 1024] = call_function aten.mul.Scalar(self=%x, other=2.0)\n"
                              "%y : float32[8, 1024] = call_function aten.softmax.int(self=%a, dim=-1)\n"
                              "%output = output(values=[%y])")
                              .front();
    const auto refused = [&](const std::string &line) { return refusal(parse_directives(line, "m.schedule"), kernel); };
    for (const char *line : {"sub.pipeline(d0, 2)", "sub.split(d1, a, b, 4)", "sub.vectorize(d1)", "sub.store_in(shared)",
                             "mul.launch_bounds(64, 2)", "mul.gpu_threads(d1)"}) {
        CAPTURE(line);
        CHECK(says(refused(line),
                   "is computed wherever it is read: it has no loops and no memory of its own; give it compute_at(stage, axis)"));
    }
    const std::string placed = "div.gpu_blocks(d0).gpu_threads(d1)\nexp.compute_at(div, d0)\nsum.compute_at(div, d0)\n";
    CHECK(says(refused(placed + "exp.pipeline(d0, 2)"),
               "m.schedule:4:5: the stage is computed in the launch of 'div'; give pipeline to 'div'"));
    CHECK(says(refused(placed + "exp.align(d1, 4)"), "m.schedule:4:5: the stage is computed in the launch of 'div'; give align to 'div'"));
    CHECK(says(refused(placed + "exp.store_in(global)"), "stage 'exp' is computed in a launch of others and stored in global"));
    CHECK(says(refused("div.store_in(shared)"), "stage 'div' is computed at the root and stored in shared"));
    CHECK(says(refused("sum.rfactor(r0, v)"), "m.schedule:1:5: rfactor makes a stage that has no launch of its own on a GPU"));
    CHECK(says(refused(placed + "in0.in(div).compute_at(div, d0).store_in(shared)"),
               "m.schedule:4:13: stage 'div' reads 'in0' only by way of stages that are computed apart; name the stage among them that "
               "reads it"));
}

TEST_CASE("a pipeline of loads that cannot go past the registers") {
    const Kernel kernel = row_shares();
    ScheduleBuilder s;
    s["total"].split("r0", "o", "i", 2).gpu_blocks("d0").pipeline("o", 2);
    s["share"].gpu_blocks("d0").gpu_threads("d1");
    CHECK(says(refusal(s.directives, kernel),
               "total.pipeline(o, 2): the loop loads nothing that can go past the registers: vectors of 4, 8"));
}

TEST_CASE("a fault that is said of a stage without directives is told at its kernel's entry") {
    KernelSchedule entry;
    entry.name = "row_shares";
    entry.location = {"m.schedule", 5, 1};
    const std::string told = tests::refusal_of([&] {
        at_entry(entry,
                 [] { schedule_error({}, "total", "it is computed at 'share', which is inlined", "name the stage that has the loops"); });
    });
    CHECK(told ==
          "m.schedule:5:1: kernel row_shares: total: it is computed at 'share', which is inlined; name the stage that has the loops");
}
