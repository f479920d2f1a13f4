// Lesson 3: a blur of 3 by 3 points with compute_at: the same two stages computed in three ways.
//
//     lesson_3_blur [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// Where a stage is computed is a choice between computing again, keeping much, and keeping little:
//   inline   its expression stands in its reader: no memory, and each point of `across` is computed three times
//   root     all of it first: each point once, but the whole picture goes through memory
//   at       strip by strip: nearly each point once, and a strip stays near
#include <cmath>
#include <cstdio>

#include "apps/api/tilewright.h"
#include "lowering/target.h"

using namespace tilewright;

namespace {

KernelProgram blur() {
    const Extent height = Extent::symbol("height"), width = Extent::symbol("width");
    KernelProgram program("blur");
    Halide::ImageParam picture = program.input("picture", DType::float32, {height, width});
    for (const char *symbol : {"height", "width"}) {
        program.symbol(symbol, {3, 32768});  // smaller pictures have no point with all its neighbours; a call with one is refused
    }
    Halide::Var y("y"), x("x");
    Halide::Func across("across"), blurred("blurred");
    across(y, x) = (picture(y, x) + picture(y, x + 1) + picture(y, x + 2)) / 3.0F;
    blurred(y, x) = (across(y, x) + across(y + 1, x) + across(y + 2, x)) / 3.0F;
    program.stage(across, {height, width - 2});
    program.stage(blurred, {height - 2, width - 2});
    program.output(blurred);
    return program;
}

/// What is the same for all three ways: `blurred` in strips of 16 lines, eight neighbours or a thread for each.
void shape(ScheduleBuilder &s, bool on_cpu) {
    if (on_cpu) {
        s["blurred"].split("y", "strip", "line", 16).parallel("strip").split("x", "vectors", "lane", 8).vectorize("lane");
    } else {
        s["blurred"].split("y", "strip", "line", 16).split("x", "block", "thread", 128).reorder("line", "thread", "block", "strip");
        s["blurred"].gpu_blocks("block", "strip").gpu_threads("thread");
    }
}

/// `across`, where it has loops of its own.
void shape_across(ScheduleBuilder &s, bool on_cpu, bool at_root) {
    if (on_cpu) {
        s["across"].split("x", "vectors", "lane", 8).vectorize("lane");
    } else if (at_root) {
        s["across"].split("x", "block", "thread", 128).gpu_blocks("block", "y").gpu_threads("thread");
    }
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const bool on_cpu = choose_target(options).kind == TargetKind::cpu;
    ScheduleBuilder inlined, root, at;
    shape(inlined, on_cpu);
    inlined["across"].compute_inline();
    shape(root, on_cpu);
    root["across"].compute_root();
    shape_across(root, on_cpu, true);
    shape(at, on_cpu);
    // Bounds are inferred: a strip of 16 lines of `blurred` needs 18 of `across`.
    at["across"].compute_at("blurred", on_cpu ? "strip" : "block");
    shape_across(at, on_cpu, false);

    constexpr int height = 530, width = 701;  // neither strips nor vectors fit: what hangs over is guarded
    const HostTensor picture = HostTensor::zeros(DType::float32, {height, width});
    auto *in = reinterpret_cast<float *>(picture.mutable_data());
    for (int k = 0; k < height * width; ++k) {
        in[k] = static_cast<float>(k * 7919LL % 256);
    }
    int wrong = 0;
    for (const auto &[name, schedule] : {std::pair("inline", inlined.directives), {"root", root.directives}, {"at", at.directives}}) {
        const CompiledFunction f = blur().compile(schedule, options);
        const std::vector<HostTensor> outputs = f(std::vector{picture});
        const auto *out = reinterpret_cast<const float *>(outputs[0].data());
        for (int y = 0; y < height - 2; ++y) {
            for (int x = 0; x < width - 2; ++x) {
                float sum = 0;
                for (int k = 0; k < 9; ++k) {
                    sum += in[(y + k / 3) * width + x + k % 3];
                }
                wrong += std::fabs(out[y * (width - 2) + x] - sum / 9) <= 1e-3F ? 0 : 1;
            }
        }
        double seconds = 0;
        for (const double step : f.executor().profile(std::vector{picture}, 20)) {
            seconds += step;
        }
        std::printf("%-6s  %8.1f us, %d wrong points so far\n", name, seconds * 1e6, wrong);
    }
    return wrong == 0 ? 0 : 1;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
