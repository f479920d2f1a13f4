// Lesson 7: reading what is measured of a kernel, and improving its schedule by hand.
//
//     lesson_7_explain [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// `tilewright explain MODEL.pt2` prints a line like those below for each kernel of a model, then for each edge why it was fused or not, and
// what one more fusion would cost; the notes in a schedule file say the same. How to read them:
//
//  * time against the roofline, which is what moving every input and output once would take. Far from it, look at how often memory is
//    read (is a stage stored and read again?), then at how wide the accesses are.
//  * registers and spills. A row that is kept in registers is read once; kept by too few threads it spills, and is read from memory again.
//  * occupancy: the share of threads that a multiprocessor can hold. What waits for memory wants many; 50 % is often enough.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"
#include "autotune/measure/resources.h"
#include "autotune/measure/roofline.h"
#include "lowering/compile_kernels.h"
#include "lowering/target.h"

using namespace tilewright;

namespace {

constexpr int rows = 512, columns = 1024;

/// y = x / sqrt(mean(x^2)) along rows
KernelProgram rms_norm() {
    KernelProgram program("rms_norm");
    Halide::ImageParam x = program.input("x", DType::float32, {rows, columns});
    Halide::Var row("row"), column("column");
    Halide::Func squares("squares"), y("y");
    const Halide::RDom r = reduction_domain({columns});
    define_reduction(squares, {row}, Combiner::sum, {x(row, r[0]) * x(row, r[0])}, r);
    y(row, column) = x(row, column) * math::rsqrt(squares(row) / static_cast<float>(columns) + 1e-6F);
    program.stage(squares, {rows}, {columns});
    program.stage(y, {rows, columns});
    program.output(y);
    return program;
}

struct Version {
    const char *what;
    Directives directives;
};

std::vector<Version> cpu_versions() {
    ScheduleBuilder apart, together, wide;
    apart["squares"].compute_root();
    together["squares"].compute_at("y", "row");
    together["y"].parallel("row");
    wide["y"].parallel("row").split("column", "vectors", "lane", 8).vectorize("lane");
    wide["squares"].compute_at("y", "row").split("r0", "steps", "part", 8).rfactor("part", "lane");
    wide["squares_partial"].compute_at("squares", "row").vectorize("lane");
    return {{"two passes over x, one core", apart.directives},
            {"a row stays in cache between its sum and its output; rows on all cores", together.directives},
            {"eight sums side by side, eight elements an instruction", wide.directives}};
}

std::vector<Version> gpu_versions() {
    ScheduleBuilder apart, together, wide;
    apart["squares"].compute_root().split("row", "block", "thread", 128).gpu_blocks("block").gpu_threads("thread");
    apart["y"].fuse("row", "column", "all").split("all", "block", "thread", 256).gpu_blocks("block").gpu_threads("thread");
    together["y"].split("column", "step", "thread", 128).gpu_blocks("row").gpu_threads("thread");
    together["squares"].compute_at("y", "row").split("r0", "step", "thread", 128).gpu_threads("thread").reduce_across("block");
    wide["y"]
        .split("column", "vectors", "lane", 4)
        .vectorize("lane")
        .split("vectors", "step", "thread", 128)
        .unroll("step")
        .gpu_blocks("row")
        .gpu_threads("thread");
    wide["squares"]
        .compute_at("y", "row")
        .split("r0", "vectors", "lane", 4)
        .vectorize("lane")
        .split("vectors", "step", "thread", 128)
        .unroll("step");
    wide["squares"].gpu_threads("thread").reduce_across("block");
    return {{"a thread sums a row alone: neighbouring threads read far apart, and x is read twice", apart.directives},
            {"a block a row: neighbours read neighbours, the row comes from memory once", together.directives},
            {"16 bytes an access", wide.directives}};
}

/// The line that `explain` prints.
void explain(const Version &version, const Kernel &kernel, const Target &target, double seconds) {
    const Resources resources = resources_of(compile_kernel(kernel, version.directives, target), target.gpu);
    const double bytes = 2.0 * rows * columns * sizeof(float);
    std::printf("%s\n  %.1f us, %.1f GB/s", version.what, seconds * 1e6, bytes / seconds * 1e-9);
    if (target.gpu) {
        const double least = roofline(kernel.algorithm, {}, *target.gpu).seconds;
        std::printf(", %.0f %% of the roofline, %d registers, %d bytes spilled, occupancy %d %%", 100 * least / seconds,
                    resources.registers, resources.spill_bytes, resources.occupancy);
    }
    std::printf("\n%s\n", print(version.directives).c_str());
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const Target target = choose_target(options);
    const KernelProgram program = rms_norm();
    const HostTensor x = HostTensor::zeros(DType::float32, {rows, columns});
    for (int k = 0; k < rows * columns; ++k) {
        reinterpret_cast<float *>(x.mutable_data())[k] = 1.5F + std::sin(static_cast<float>(k));
    }
    std::vector<HostTensor> expected;
    for (const Version &version : target.kind == TargetKind::cpu ? cpu_versions() : gpu_versions()) {
        const CompiledFunction f = program.compile(version.directives, options);
        const std::vector<HostTensor> outputs = f(std::vector{x});
        if (!expected.empty() && compare(expected[0], outputs[0]).mismatch) {
            std::printf("%s: other values\n", version.what);
            return 1;
        }
        expected = outputs;
        const std::vector<double> steps = f.executor().profile(std::vector{x}, 20);
        explain(version, program.kernel(), target, std::accumulate(steps.begin(), steps.end(), 0.0));
    }
    return 0;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
