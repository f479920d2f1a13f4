// Products whose columns are read in pieces, and sums that share nothing with the rows they follow.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lowering/fusion/shape.h"
#include "tests/support/partitions.h"

using namespace tilewright;
using tests::decision;
using tests::partition_of;
using tests::stages_of;

namespace {

/// exp(first half) * second half of the columns of a product, each half with its bias.
std::string gated(int rows, int columns, int terms, const char *type = "float32") {
    const int half = columns / 2;
    return fmt::format(R"(%a : {4}[{0}, {2}] = placeholder
%b : {4}[{2}, {1}] = placeholder
%bias : {4}[{1}] = placeholder
%d : {4}[{0}, {1}] = call_function tw.dot(a=%a, b=%b, out_dtype=torch.{4})
%bb : {4}[{0}, {1}] = call_function prims.broadcast_in_dim(a=%bias, size=[{0}, {1}], dims=[1])
%s : {4}[{0}, {1}] = call_function prims.add(a=%d, b=%bb)
%l : {4}[{0}, {3}] = call_function prims.slice(a=%s, dim=1, start=0, end={3}, step=1)
%r : {4}[{0}, {3}] = call_function prims.slice(a=%s, dim=1, start={3}, end={1}, step=1)
)",
                       rows, columns, terms, half, type);
}

FusionOptions pieces() {
    FusionOptions options;
    options.split_columns = true;
    return options;
}

std::string meeting(int rows, int half) {
    return fmt::format(
        "%e : float32[{0}, {1}] = call_function prims.exp(a=%l)\n%y : float32[{0}, {1}] = call_function prims.mul(a=%e, b=%r)\n"
        "%output = output(values=[%y])\n",
        rows, half);
}

}  // namespace

TEST_CASE("halves of a small product that meet are two products in one kernel, whose sums are rows") {
    const std::string lines = gated(2, 64, 16) + meeting(2, 32);
    const Partition p = partition_of(lines, pieces());
    CHECK(stages_of(p) == "dot add exp dot_1 add_1 mul");
    CHECK(decision(p, "s", "y").reason == "products that share an operand meet here");
    const KernelShapeInfo shape = kernel_shape(p.kernels[0].algorithm);
    CHECK(shape.shape == KernelShape::rows);
    CHECK(shape.is_reduced == std::vector<bool>{false, false, true});
    CHECK(stages_of(partition_of(lines)) == "dot add | exp mul");
}

TEST_CASE("a product stays whole where its pieces part, or a reader takes it whole, or it is an output") {
    const std::string exps = "%e : float32[2, 32] = call_function prims.exp(a=%l)\n%f : float32[2, 32] = call_function prims.exp(a=%r)\n";
    CHECK(stages_of(partition_of(gated(2, 64, 16) + exps + "%output = output(values=[%e, %f])\n", pieces())).substr(0, 9) == "dot add |");
    const std::string whole = "%t : float32[2] = call_function prims.sum(a=%s, dims=[1])\n" + meeting(2, 32);
    const std::string both = whole.substr(0, whole.find("[%y]")) + "[%y, %t])\n";
    CHECK(stages_of(partition_of(gated(2, 64, 16) + both, pieces())).substr(0, 9) == "dot add |");
    const std::string lines = meeting(2, 32);
    CHECK(stages_of(partition_of(gated(2, 64, 16) + lines.substr(0, lines.find("[%y]")) + "[%y, %s])\n", pieces())).substr(0, 9) ==
          "dot add |");
}

TEST_CASE("a product of the size of others sums along their rows, but shares nothing with them: it stays apart") {
    const Partition p = partition_of(R"(%x : float32[512] = placeholder
%w : float32[1024, 512] = placeholder
%v : float32[512, 1024] = placeholder
%xb : float32[1024, 512] = call_function prims.broadcast_in_dim(a=%x, size=[1024, 512], dims=[1])
%p : float32[1024, 512] = call_function prims.mul(a=%xb, b=%w)
%h : float32[1024] = call_function prims.sum(a=%p, dims=[1])
%hb : float32[512, 1024] = call_function prims.broadcast_in_dim(a=%h, size=[512, 1024], dims=[1])
%q : float32[512, 1024] = call_function prims.mul(a=%hb, b=%v)
%y : float32[512] = call_function prims.sum(a=%q, dims=[1])
%output = output(values=[%y]))",
                                     {.mixed = true});
    CHECK(p.kernels.size() == 2);
}
