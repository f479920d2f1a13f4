// Lesson 4: tuning a kernel, and checking its schedule in.
//
//     lesson_4_tune [cpu|cuda [FILE]]        the GPU where one answers, else the CPU; FILE: gate.schedule
//
// `tilewright autotune MODEL.pt2` tunes all kernels of a model, each candidate in a process of its own. For a kernel of one's own the same
// candidates can be measured in a few lines, as here. What is found is text: check it in beside the program, review it, edit it.
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"
#include "autotune/search/space.h"
#include "lowering/choose_schedules.h"

using namespace tilewright;

namespace {

/// y[i, j] = x[i, j] * sigmoid(gate[i, j])
KernelProgram gate() {
    const Extent rows = Extent::symbol("rows");
    KernelProgram program("gate");
    Halide::ImageParam x = program.input("x", DType::float32, {rows, 512}), gate = program.input("gate", DType::float32, {rows, 512});
    Halide::Var i("i"), j("j");
    Halide::Func y("y");
    y(i, j) = x(i, j) / (1.0F + math::exp(-gate(i, j)));
    program.stage(y, {rows, 512});
    program.output(y);
    return program;
}

double seconds_of(const CompiledFunction &f, const std::vector<HostTensor> &inputs) {
    const std::vector<double> steps = f.executor().profile(inputs, 10);  // the least of ten runs
    return std::accumulate(steps.begin(), steps.end(), 0.0);
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const std::string path = argc > 2 ? argv[2] : "gate.schedule";
    const KernelProgram program = gate();
    const Kernel kernel = program.kernel();
    const Target target = choose_target(options);
    std::vector<HostTensor> inputs(2);
    for (HostTensor &input : inputs) {
        input = HostTensor::zeros(DType::float32, {256, 512});
        for (int k = 0; k < 256 * 512; ++k) {
            reinterpret_cast<float *>(input.mutable_data())[k] = std::sin(static_cast<float>(k));
        }
    }

    // 1. Search: the default schedule and what the tuner would try with it, then what lies one step away from the best so far.
    KernelSchedule entry = default_schedule(kernel, target, {}, options);
    Directives &best = entry.variants[0].directives;
    const HostTensor expected = program.compile(best, options)(inputs)[0];
    double best_seconds = INFINITY;
    SearchSpace space(kernel, target, options);
    std::vector<Directives> pending = space.first(best);
    std::set<std::string> seen;
    for (std::size_t next = 0; next < pending.size() && seen.size() < 12; ++next) {
        const Directives candidate = pending[next];
        if (!seen.insert(print(candidate)).second) {
            continue;  // another step led here before
        }
        try {
            const CompiledFunction f = program.compile(candidate, options);
            if (compare(expected, f(inputs)[0]).mismatch) {
                return 1;
            }
            const double seconds = seconds_of(f, inputs);
            std::printf("%8.1f us  %s", seconds * 1e6, print(candidate).c_str());
            if (seconds < best_seconds) {
                best_seconds = seconds;
                best = candidate;
                const std::vector<Directives> steps = space.around(best);
                pending.insert(pending.end(), steps.begin(), steps.end());
            }
        } catch (const UserError &) {  // this step does not fit the kernel
        }
    }

    // 2. The file. An entry names its algorithm by a hash, so that it can never be applied to a kernel that computes something else.
    entry.notes = {fmt::format("rows=256: {:.1f} us", best_seconds * 1e6)};
    write_schedule({1, kernel.name, kernel.hash.to_string(), target.to_string(), target.device, {entry}}, path);

    // 3. Whoever has the file gets this code at once, without a search.
    ScheduleFile file = read_schedule(path);
    std::printf("\n%s\n", print(file).c_str());
    int wrong = compare(expected, program.compile(file, options)(inputs)[0]).mismatch ? 1 : 0;

    // 4. Editing it by hand, as a text editor would: the same values, other code. On the CPU the loop over rows goes inside, so that each
    //    step jumps a whole row, which is slow; on a GPU each row gets a block, and each element a thread.
    file.kernels[0].variants[0].directives = target.kind == TargetKind::cpu ? parse_directives("y.reorder(i, j)", "edit")
                                                                            : parse_directives("y.gpu_blocks(i).gpu_threads(j)", "edit");
    const CompiledFunction edited = program.compile(file, options);
    wrong += compare(expected, edited(inputs)[0]).mismatch ? 1 : 0;
    std::printf("%8.1f us  %s", seconds_of(edited, inputs) * 1e6, print(file.kernels[0].variants[0].directives).c_str());

    // 5. A mistake is refused, with its line and column.
    try {
        file.kernels[0].variants[0].directives = parse_directives("y.vectorize(q)", "edit");
        program.compile(file, options);
        wrong += 1;
    } catch (const UserError &error) {
        std::printf("refused: %s\n", error.what());
    }
    return wrong == 0 ? 0 : 1;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
