// Lesson 6: attention with a score function of one's own, in one kernel.
//
//     lesson_6_attention [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// Attention is two products joined by a softmax. The score between them is any pointwise expression: here capped softly, lowered with the
// distance, and cut to a window. Nothing names the whole "attention": the schedule's `stream` asks for the form, and the lowering finds it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "apps/api/tilewright.h"
#include "lowering/target.h"

using namespace tilewright;

namespace {

constexpr int heads = 2, width = 64, window = 40;
constexpr float scale = 0.125F, cap = 20, slope = 0.05F;

KernelProgram attention() {
    const Extent rows = Extent::symbol("rows");
    KernelProgram program("attention");
    Halide::ImageParam q = program.input("q", DType::bfloat16, {heads, rows, width}),
                       k = program.input("k", DType::bfloat16, {heads, rows, width}),
                       v = program.input("v", DType::bfloat16, {heads, rows, width});
    Halide::Var head("head"), row("row"), column("column");
    Halide::Func dot("dot"), score("score"), largest("largest"), weight("weight"), total("total"), weighted("weighted"), y("y");
    const auto wide = [](const Halide::Expr &e) { return math::convert(Halide::Float(32), e); };

    const Halide::RDom depth = reduction_domain({width}), keys = reduction_domain({to_halide(rows)});
    define_reduction(dot, {head, row, column}, Combiner::sum, {wide(q(head, row, depth[0])) * wide(k(head, column, depth[0]))}, depth);
    const Halide::Expr capped = cap * math::tanh(dot(head, row, column) * (scale / cap));
    const Halide::Expr distant = capped - slope * wide(row - column);
    score(head, row, column) = Halide::select(column <= row && column > row - window, distant, -std::numeric_limits<float>::infinity());
    define_reduction(largest, {head, row}, Combiner::maximum, {score(head, row, keys[0])}, keys);
    weight(head, row, column) = math::exp(score(head, row, column) - largest(head, row));
    define_reduction(total, {head, row}, Combiner::sum, {weight(head, row, keys[0])}, keys);
    define_reduction(weighted, {head, row, column}, Combiner::sum, {weight(head, row, keys[0]) * wide(v(head, keys[0], column))}, keys);
    y(head, row, column) = math::convert(Halide::BFloat(16), weighted(head, row, column) / total(head, row));

    program.stage(dot, {heads, rows, rows}, {width});
    program.stage(score, {heads, rows, rows});
    program.stage(largest, {heads, rows}, {rows});
    program.stage(weight, {heads, rows, rows});
    program.stage(total, {heads, rows}, {rows});
    program.stage(weighted, {heads, rows, width}, {rows});
    program.stage(y, {heads, rows, width});
    program.output(y);
    return program;
}

Directives gpu_schedule() {
    ScheduleBuilder s;
    // A block has 128 rows of one head: two warpgroups of 64 rows.
    s["y"].split("row", "tile", "in_tile", 128).gpu_blocks("tile", "head");
    // It walks along the keys 64 at a time and carries the maximum and the total with it: whenever a maximum grows, what was summed so far
    // is rescaled. No score is ever stored. The window is a condition on places, so steps that lie outside of it are not visited.
    s["weighted"].compute_at("y", "tile").store_in("register").split("r0", "step", "in_step", 64).stream("step", "largest", "total");
    // Both products run on the matrix unit. A warpgroup of its own copies keys and values two steps ahead; the other two multiply in turn:
    // while one does, the other takes exponentials.
    s["weighted"].tensor_core(64, width, 16).warpgroups(2).pipeline("step", 2).producer_warps(1).take_turns();
    s["dot"].compute_at("weighted", "step").tensor_core(64, 64, 16);
    return s.directives;
}

float value_of(std::uint16_t bfloat16) {
    const std::uint32_t bits = static_cast<std::uint32_t>(bfloat16) << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// Of bfloat16: the upper half of sines in float.
HostTensor waves(int rows, float frequency) {
    const HostTensor tensor = HostTensor::zeros(DType::bfloat16, {heads, rows, width});
    auto *values = reinterpret_cast<std::uint16_t *>(tensor.mutable_data());
    for (int i = 0; i < heads * rows * width; ++i) {
        const float value = 2 * std::sin(frequency * static_cast<float>(i));
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        values[i] = static_cast<std::uint16_t>(bits >> 16);
    }
    return tensor;
}

double element(const HostTensor &tensor, int rows, int head, int row, int column) {
    return value_of(reinterpret_cast<const std::uint16_t *>(tensor.data())[(head * rows + row) * width + column]);
}

double largest_error(const std::vector<HostTensor> &inputs, const HostTensor &y, int rows) {
    double error = 0;
    for (int head = 0; head < heads; ++head) {
        for (int row = 0; row < rows; ++row) {
            const int first = std::max(0, row - window + 1);
            double total = 0, sums[width] = {};
            for (int key = first; key <= row; ++key) {
                double dot = 0;
                for (int d = 0; d < width; ++d) {
                    dot += element(inputs[0], rows, head, row, d) * element(inputs[1], rows, head, key, d);
                }
                const double weight =
                    std::exp(cap * std::tanh(dot * scale / cap) - slope * (row - key));  // at most exp(cap): no overflow in double
                total += weight;
                for (int d = 0; d < width; ++d) {
                    sums[d] += weight * element(inputs[2], rows, head, key, d);
                }
            }
            for (int d = 0; d < width; ++d) {
                const double difference = std::fabs(element(y, rows, head, row, d) - sums[d] / total);
                error = difference <= error ? error : difference;  // a NaN stays
            }
        }
    }
    return error;
}

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const Target target = choose_target(options);
    // The CPU, and GPUs before Hopper, compute it in the default way, stage by stage.
    const bool streams = target.gpu && target.gpu->warpgroup_multiply;
    const KernelProgram program = attention();
    if (streams) {
        std::printf("%s\n", print(gpu_schedule()).c_str());
    }
    const CompiledFunction f = streams ? program.compile(gpu_schedule(), options) : program.compile(options);

    constexpr int rows = 200;  // any number of rows, whatever the tiles are
    const std::vector<HostTensor> inputs{waves(rows, 0.37F), waves(rows, 0.73F), waves(rows, 0.11F)};
    const double error = largest_error(inputs, f(inputs)[0], rows);
    std::printf("largest error: %g\n", error);
    return error < 0.02 ? 0 : 1;  // values up to 2 in bfloat16
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
