// Strides of results that a GPU's convolutions give and that torch.export does not record.
#include "dsl/capture/eager_strides.h"

#include <doctest/doctest.h>

#include "dsl/capture/archive.h"
#include "lowering/decompose/decompose.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {

const std::string attributes = "stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1";

/// The layout of the first output, as decompose() hands it on.
std::string layout_of(const std::string &lines, bool on_gpu = true) {
    Program program = tests::program_from(lines);
    if (on_gpu) {
        restore_eager_strides(program.graph);
    }
    functionalize(program);
    decompose(program);
    return program.outputs[0].meta->to_string();
}

std::string convolution(const std::string &x, const std::string &w, const std::string &rest) {
    return "%x : " + x + " = placeholder\n%w : " + w +
           " = placeholder\n%s : float32[1, 8, 1, 1] = placeholder\n"
           "%c : float32[2, 8, 5, 6] = call_function aten.conv2d.default(input=%x, weight=%w, " +
           attributes + ")\n" + rest;
}

TensorMeta meta(std::vector<Extent> sizes, std::vector<Extent> strides) {
    TensorMeta result = TensorMeta::contiguous(DType::float32, std::move(sizes));
    result.strides = std::move(strides);
    return result;
}

}  // namespace

TEST_CASE("a convolution on a GPU keeps channels last, of its input or of its weight, and elementwise operators keep it") {
    const std::string first = "float32[2, 4, 5, 6]", last = "float32[2, 4, 5, 6] strides=[120, 1, 24, 4]", weight = "float32[8, 4, 3, 3]";
    const std::string whole =
        "%m : float32[2, 8, 5, 6] = call_function aten.mul.Tensor(self=%c, other=%s)\n"
        "%r : float32[2, 8, 5, 6] = call_function aten.relu_.default(self=%m)\n%output = output(values=[%r])";
    const std::string expected = "float32[2, 8, 5, 6] strides=[240, 1, 48, 8]";
    CHECK(layout_of(convolution(last, weight, whole)) == expected);
    CHECK(layout_of(convolution(first, weight + " strides=[36, 1, 12, 4]", whole)) == expected);
    CHECK(layout_of(convolution(first, weight, whole)) == "float32[2, 8, 5, 6]");
    CHECK(layout_of(convolution(last, weight, whole), false) == "float32[2, 8, 5, 6]");  // a CPU does as it says
}

TEST_CASE("what a view or a reduction makes of a corrected value stays as it was recorded") {
    const std::string last = "float32[2, 4, 5, 6] strides=[120, 1, 24, 4]";
    CHECK(layout_of(convolution(last, "float32[8, 4, 3, 3]",
                                "%m : float32[2, 8, 5] = call_function aten.sum.dim_IntList(self=%c, dim=[3], keepdim=false)\n"
                                "%output = output(values=[%m])")) == "float32[2, 8, 5]");
}

TEST_CASE("an elementwise result has the dimensions in the order of its first input that tells them apart") {
    const std::vector<Extent> sizes{2, 3, 4, 5};
    const TensorMeta last = meta(sizes, {60, 1, 15, 3}), first = TensorMeta::contiguous(DType::float32, sizes),
                     channel = TensorMeta::contiguous(DType::float32, {1, 3, 1, 1});
    CHECK(elementwise_strides({last, channel}, sizes) == last.strides);
    CHECK(elementwise_strides({channel, last}, sizes) == last.strides);
    CHECK(elementwise_strides({first, last}, sizes) == first.strides);
    CHECK(elementwise_strides({last, first}, sizes) == last.strides);
    CHECK(elementwise_strides({TensorMeta::contiguous(DType::float32, {5})}, sizes) == first.strides);
    const std::vector<Extent> square{3, 4};
    CHECK(elementwise_strides({meta(square, {1, 3})}, square) == std::vector<Extent>{1, 3});
}

TEST_CASE("the strides of an archive that was exported on a GPU are corrected as it is read") {
    const Program program = read_archive("tests/data/archives/exported_on_gpu.pt2");
    CHECK(program.graph.output_values()[0].node()->tensor().strides == std::vector<Extent>{240, 1, 48, 8});
}
