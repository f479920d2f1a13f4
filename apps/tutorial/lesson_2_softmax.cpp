// Lesson 2: softmax of rows, scheduled by hand.
//
//     lesson_2_softmax [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// Two reductions and two pointwise stages over one row. The algorithm is written once; each target gets its own schedule, a list of
// directives. A directive changes no value, but for the last bits of a sum whose order it changes; one that would is refused.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/api/tilewright.h"
#include "lowering/target.h"

using namespace tilewright;

namespace {

constexpr int columns = 300;

KernelProgram softmax() {
    const Extent rows = Extent::symbol("rows");
    KernelProgram program("softmax");
    Halide::ImageParam x = program.input("x", DType::float32, {rows, columns});
    Halide::Var row("row"), column("column");
    Halide::Func largest("largest"), weight("weight"), total("total"), y("y");

    // A reduction folds terms into each element, over a domain whose axes are r0, r1, … in schedules.
    const Halide::RDom r = reduction_domain({columns});
    define_reduction(largest, {row}, Combiner::maximum, {x(row, r[0])}, r);
    weight(row, column) = math::exp(x(row, column) - largest(row));
    define_reduction(total, {row}, Combiner::sum, {weight(row, r[0])}, r);
    y(row, column) = weight(row, column) / total(row);

    program.stage(largest, {rows}, {columns});  // the last list: extents of what is reduced over
    program.stage(weight, {rows, columns});
    program.stage(total, {rows}, {columns});
    program.stage(y, {rows, columns});
    program.output(y);
    return program;
}

Directives cpu_schedule() {
    ScheduleBuilder s;
    // A row at a time, rows shared out among the cores, eight neighbours in one instruction. The axes' names are those of the Vars.
    s["y"].parallel("row").split("column", "vectors", "lane", 8).vectorize("lane");
    // compute_at: the row's weights are computed where the row of y is, and stay in cache until it has been written.
    s["weight"].compute_at("y", "row").split("column", "vectors", "lane", 8).vectorize("lane");
    // A sum is a chain of additions. rfactor keeps eight sums side by side in a stage of their own, which can be vectorised.
    s["largest"].compute_at("y", "row").split("r0", "steps", "part", 8).rfactor("part", "lane");
    s["largest_partial"].compute_at("largest", "row").vectorize("lane");
    s["total"].compute_at("y", "row").split("r0", "steps", "part", 8).rfactor("part", "lane");
    s["total_partial"].compute_at("total", "row").vectorize("lane");
    return s.directives;
}

Directives gpu_schedule() {
    ScheduleBuilder s;
    // A block of 128 threads for each row: thread number t has the elements t, t + 128, …
    s["y"].split("column", "step", "thread", 128).gpu_blocks("row").gpu_threads("thread");
    s["weight"].compute_at("y", "row").split("column", "step", "thread", 128).gpu_threads("thread");
    // Every thread reduces its elements; then the block combines them by shuffles and through shared memory.
    s["largest"].compute_at("y", "row").split("r0", "step", "thread", 128).gpu_threads("thread").reduce_across("block");
    s["total"].compute_at("y", "row").split("r0", "step", "thread", 128).gpu_threads("thread").reduce_across("block");
    return s.directives;
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const Directives schedule = choose_target(options).kind == TargetKind::cpu ? cpu_schedule() : gpu_schedule();
    std::printf("%s\n", print(schedule).c_str());  // as a schedule file would have it
    const CompiledFunction f = softmax().compile(schedule, options);

    constexpr int rows = 37;
    const HostTensor x = HostTensor::zeros(DType::float32, {rows, columns});
    auto *xs = reinterpret_cast<float *>(x.mutable_data());
    for (int k = 0; k < rows * columns; ++k) {
        xs[k] = 20 * std::sin(0.7F * static_cast<float>(k));
    }
    const std::vector<HostTensor> outputs = f(std::vector{x});
    const auto *ys = reinterpret_cast<const float *>(outputs[0].data());

    double error = 0;
    for (int row = 0; row < rows; ++row, xs += columns, ys += columns) {
        double largest = xs[0], total = 0;
        std::for_each(xs, xs + columns, [&](float value) { largest = std::max<double>(largest, value); });
        std::for_each(xs, xs + columns, [&](float value) { total += std::exp(value - largest); });
        for (int column = 0; column < columns; ++column) {
            const double difference = std::fabs(ys[column] - std::exp(xs[column] - largest) / total);
            error = difference <= error ? error : difference;  // a NaN stays
        }
    }
    std::printf("largest error: %g\n", error);
    return error < 1e-6 ? 0 : 1;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
