// Which kernels are products that cuBLASLt can compute, and as which call.
#include "lowering/cuda/matmul_engine.h"

#include <doctest/doctest.h>

#include "dsl/error.h"
#include "lowering/cuda/engine.h"
#include "lowering/pipeline.h"

using namespace tilewright;

namespace {

const GpuFacts &hopper = gpu_facts("sm_90a");

/// The kernels of an archive's partition.
std::vector<Kernel> kernels_of(const std::string &archive) {
    Options options;
    options.target = "cpu";
    return compile_archive(archive, options, PipelineStep::partition).partition.kernels;
}

}  // namespace

TEST_CASE("products are recognised with their layouts, batches, biases and types") {
    int products = 0, batched = 0, with_bias = 0, transposed = 0;
    for (const Kernel &kernel : kernels_of("tests/data/operators/matmul_half.pt2")) {
        std::string why;
        const auto step = match_matmul(kernel, &why);
        CHECK((step.has_value() || !why.empty()));
        if (!step) {
            continue;
        }
        products++;
        const Algorithm &a = kernel.algorithm;
        const TensorMeta &left = a.inputs[step->a].meta, &right = a.inputs[step->b].meta, &out = a.outputs[0].meta;
        CHECK(left.dtype == step->input_type);
        CHECK(right.dtype == step->input_type);
        CHECK(out.dtype == step->output_type);
        CHECK(left.elements() == step->batch * step->m * step->k);
        CHECK(right.elements() == step->batch * step->k * step->n);
        CHECK(out.elements() == step->batch * step->m * step->n);
        CHECK(step->d == static_cast<int>(a.inputs.size()));
        batched += step->batch == Extent(1) ? 0 : 1;
        transposed += step->transpose_b ? 1 : 0;
        if (step->bias >= 0) {
            with_bias++;
            CHECK(a.inputs[step->bias].meta.elements() == step->n);
        }
    }
    CHECK(products >= 6);
    CHECK(batched >= 2);
    CHECK(with_bias >= 2);
    CHECK(transposed >= 2);
}

TEST_CASE("an engine for a kernel that is no product is refused with the reason") {
    Directive engine{"softmax", "engine", {std::string("cublaslt")}, {"m.schedule", 7, 3}, {}};
    for (const Kernel &kernel : kernels_of("tests/data/operators/softmax.pt2")) {
        CHECK_THROWS_WITH_AS(compile_engine(kernel, engine, hopper), doctest::Contains("m.schedule:7:3: softmax.engine("), UserError);
    }
    engine.arguments = {std::string("mkl")};
    CHECK_THROWS_WITH_AS(compile_engine(kernels_of("tests/data/operators/softmax.pt2")[0], engine, hopper),
                         doctest::Contains("the engines are"), UserError);
}
