// Views cost no copy: inputs are strided views, outputs and intermediates are stored as their readers want them.
#include <doctest/doctest.h>

#include "tests/support/partitions.h"

using namespace tilewright;
using tests::partition_of;
using tests::stages_of;

TEST_CASE("slices, reshapes and transposes around attention are strides") {
    const Partition p = partition_of(R"(%x : float32[2, 8, 96] = placeholder
%w : float32[32, 32] = placeholder
%k : float32[2, 8, 32] = call_function prims.slice(a=%x, dim=2, start=32, end=64, step=1)
%k1 : float32[2, 8, 4, 8] = call_function prims.reshape(a=%k, size=[2, 8, 4, 8])
%k2 : float32[2, 4, 8, 8] = call_function prims.permute(a=%k1, dims=[0, 2, 3, 1])
%q : float32[2, 4, 8, 8] = placeholder
%o : float32[2, 4, 8, 8] = call_function tw.dot(a=%q, b=%k2, out_dtype=torch.float32)
%o1 : float32[2, 8, 4, 8] = call_function prims.permute(a=%o, dims=[0, 2, 1, 3])
%o2 : float32[16, 32] = call_function prims.reshape(a=%o1, size=[16, 32])
%z : float32[16, 32] = call_function tw.dot(a=%o2, b=%w, out_dtype=torch.float32)
%z1 : float32[2, 8, 32] = call_function prims.reshape(a=%z, size=[2, 8, 32])
%output = output(values=[%z1]))");
    CHECK(stages_of(p) == "dot | dot");
    REQUIRE(p.kernels.size() == 2);
    const TensorMeta &k = p.kernels[0].algorithm.inputs[1].meta;
    CHECK(k.to_string() == "float32[2, 4, 8, 8] strides=[768, 8, 96, 1] offset=32");
    CHECK(p.calls[0].inputs == std::vector<std::string>{"q", "x"});
    // The product is stored transposed, so that the next one reads plain rows.
    CHECK(p.intermediates[0].meta.to_string() == "float32[2, 4, 8, 8] strides=[256, 8, 32, 1]");
    CHECK(p.kernels[1].algorithm.inputs[0].meta.to_string() == "float32[16, 32]");
    CHECK(p.kernels[1].algorithm.outputs[0].meta.to_string() == "float32[16, 32]");
}

TEST_CASE("a transposed output is the store's strides") {
    const Partition p = partition_of(R"(%x : float32[8, 4] = placeholder
%e : float32[8, 4] = call_function prims.exp(a=%x)
%t : float32[4, 8] = call_function prims.permute(a=%e, dims=[1, 0])
%output = output(values=[%t]))");
    CHECK(stages_of(p) == "exp");
    CHECK(p.kernels[0].algorithm.outputs[0].meta.to_string() == "float32[8, 4] strides=[1, 8]");
}

TEST_CASE("neighbours in a stencil stay reads of one tensor") {
    const Partition p = partition_of(R"(%x : float32[8, 10] = placeholder
%l : float32[8, 8] = call_function prims.slice(a=%x, dim=1, start=0, end=8, step=1)
%r : float32[8, 8] = call_function prims.slice(a=%x, dim=1, start=2, end=10, step=1)
%s : float32[8, 8] = call_function prims.add(a=%l, b=%r)
%output = output(values=[%s]))");
    CHECK(p.calls[0].inputs == std::vector<std::string>{"x"});
    CHECK(print(p.kernels[0].algorithm).find("in0(d0, d1) + in0(d0, d1 + 2)") != std::string::npos);
}

TEST_CASE("a reshape by a symbolic size is a view too") {
    const Partition p = partition_of(R"(%x : float32[s0, s1, 32] = placeholder
%w : float32[8, 8] = placeholder
%a : float32[s0, s1, 4, 8] = call_function prims.reshape(a=%x, size=[s0, s1, 4, 8])
%b : float32[s0, 4, s1, 8] = call_function prims.permute(a=%a, dims=[0, 2, 1, 3])
%wb : float32[s0, 4, 8, 8] = call_function prims.broadcast_in_dim(a=%w, size=[s0, 4, 8, 8], dims=[2, 3])
%y : float32[s0, 4, s1, 8] = call_function tw.dot(a=%b, b=%wb, out_dtype=torch.float32)
%output = output(values=[%y]))");
    CHECK(stages_of(p) == "dot");
    CHECK(p.kernels[0].algorithm.inputs[0].meta.to_string() == "float32[s0, 4, s1, 8] strides=[s1*32, 8, 32, 1]");
    CHECK(p.kernels[0].algorithm.inputs[1].meta.to_string() == "float32[8, 8]");
    CHECK(p.kernels[0].algorithm.symbols.size() == 2);
}

TEST_CASE("concatenation and padding are computed where they are read") {
    const Partition p = partition_of(R"(%a : float32[4, 3] = placeholder
%b : float32[4, 5] = placeholder
%c : float32[4, 8] = call_function prims.cat(tensors=[%a, %b], dim=1)
%s : float32[4] = call_function prims.sum(a=%c, dims=[1])
%output = output(values=[%s]))");
    CHECK(stages_of(p) == "cat sum");
}

TEST_CASE("slices of one tensor at aligned places share a kernel") {
    const Partition p = partition_of(R"(%x : float32[6, 64] = placeholder
%w : float32[64, 64] = placeholder
%a : float32[2, 64] = call_function prims.slice(a=%x, dim=0, start=2, end=4, step=1)
%b : float32[2, 64] = call_function prims.slice(a=%x, dim=0, start=4, end=6, step=1)
%ya : float32[2, 64] = call_function tw.dot(a=%a, b=%w, out_dtype=torch.float32)
%yb : float32[2, 64] = call_function tw.dot(a=%b, b=%w, out_dtype=torch.float32)
%output = output(values=[%ya, %yb]))");
    REQUIRE(p.kernels.size() == 1);
    REQUIRE(p.calls.size() == 2);
    CHECK(p.calls[1].input_offsets[0] == Extent(256));
}

TEST_CASE("checked indices of equal layers share a kernel and keep their messages apart") {
    const Partition p = partition_of(R"(%t : float32[5, 8] = placeholder
%i : int64[3] = placeholder
%j : int64[3] = placeholder
%w : float32[8, 5] = placeholder
%a : float32[3, 8] = call_function tw.gather_nd(a=%t, indices=[%i, none], wrap=false)
%y : float32[3, 8] = call_function prims.exp(a=%a)
%u : float32[3, 5] = call_function tw.dot(a=%y, b=%w, out_dtype=torch.float32)
%u0 : float32[5, 3] = call_function prims.permute(a=%u, dims=[1, 0])
%v : float32[5, 8] = call_function tw.dot(a=%u0, b=%y, out_dtype=torch.float32)
%b : float32[3, 8] = call_function tw.gather_nd(a=%v, indices=[%j, none], wrap=false)
%z : float32[3, 8] = call_function prims.exp(a=%b)
%output = output(values=[%z]))");
    REQUIRE(p.calls.size() == 4);
    CHECK(p.calls[0].kernel == p.calls[3].kernel);
    CHECK(p.calls[0].index_sites != p.calls[3].index_sites);
}

/// Two heads of values, each multiplied by three heads of weights. `values` gives %v : bfloat16[64, 32].
static std::string shared_heads(const std::string &values) {
    return values + R"(%v1 : bfloat16[64, 2, 16] = call_function prims.reshape(a=%v, size=[64, 2, 16])
%v2 : bfloat16[2, 64, 16] = call_function prims.permute(a=%v1, dims=[1, 0, 2])
%v3 : bfloat16[2, 3, 64, 16] = call_function prims.broadcast_in_dim(a=%v2, size=[2, 3, 64, 16], dims=[0, 2, 3])
%v4 : bfloat16[6, 64, 16] = call_function prims.reshape(a=%v3, size=[6, 64, 16])
%p : bfloat16[6, 8, 64] = placeholder
%y : bfloat16[6, 8, 16] = call_function tw.dot(a=%p, b=%v4, out_dtype=torch.bfloat16)
%output = output(values=[%y]))";
}

TEST_CASE("heads that several heads of queries share are read at places of their own") {
    const Partition p = partition_of(shared_heads(R"(%x : bfloat16[64, 32] = placeholder
%w : bfloat16[32, 32] = placeholder
%v : bfloat16[64, 32] = call_function tw.dot(a=%x, b=%w, out_dtype=torch.bfloat16)
)"));
    REQUIRE(p.kernels.size() == 2);
    const std::string text = print(p.kernels[1].algorithm);
    CHECK(text.find("bfloat16[64, 2, 16]") != std::string::npos);
    CHECK(text.find("(d1, d0 / 3, d2)") != std::string::npos);
}

TEST_CASE("so are heads that lie behind others in one projection") {
    const Partition p = partition_of(shared_heads(R"(%x : bfloat16[64, 32] = placeholder
%w : bfloat16[32, 96] = placeholder
%qkv : bfloat16[64, 96] = call_function tw.dot(a=%x, b=%w, out_dtype=torch.bfloat16)
%v : bfloat16[64, 32] = call_function prims.slice(a=%qkv, dim=1, start=64, end=96, step=1)
)"));
    REQUIRE(p.kernels.size() == 2);
    const std::string text = print(p.kernels[1].algorithm);
    CHECK_MESSAGE(text.find("bfloat16[64, 6, 16]") != std::string::npos, text);
    CHECK_MESSAGE(text.find("(d1, d0 / 3 + 4, d2)") != std::string::npos, text);
}

TEST_CASE("a sum of a product's rows loses axes of one place with the product") {
    const Partition p = partition_of(R"(%x : float32[8, 4] = placeholder
%w : float32[4, 16] = placeholder
%g : float32[16] = placeholder
%y : float32[8, 16] = call_function tw.dot(a=%x, b=%w, out_dtype=torch.float32)
%y1 : float32[1, 8, 16] = call_function prims.reshape(a=%y, size=[1, 8, 16])
%s : float32[1, 8] = call_function prims.sum(a=%y1, dims=[2])
%s1 : float32[1, 8, 1] = call_function prims.reshape(a=%s, size=[1, 8, 1])
%sb : float32[1, 8, 16] = call_function prims.broadcast_in_dim(a=%s1, size=[1, 8, 16], dims=[0, 1, 2])
%d : float32[1, 8, 16] = call_function prims.div(a=%y1, b=%sb)
%e : float32[8, 16] = call_function prims.reshape(a=%d, size=[8, 16])
%v : float32[16, 4] = placeholder
%o : float32[8, 4] = call_function tw.dot(a=%e, b=%v, out_dtype=torch.float32)
%output = output(values=[%o]))");
    const std::string text = print(p);
    CHECK(text.find("sum[d0: 8] float32 = sum over r0: 16") != std::string::npos);
    CHECK(text.find("div[d0: 8, d1: 16]") != std::string::npos);
}

TEST_CASE("neighbours that stages of one kernel read stay reads of one tensor") {
    const Partition p = partition_of(R"(%x : float32[64, 66] = placeholder
%a : float32[64, 64] = call_function prims.slice(a=%x, dim=1, start=0, end=64, step=1)
%b : float32[64, 64] = call_function prims.slice(a=%x, dim=1, start=2, end=66, step=1)
%c : float32[64, 64] = call_function prims.neg(a=%a)
%d : float32[64, 64] = call_function prims.exp(a=%b)
%e : float32[64, 64] = call_function prims.add(a=%c, b=%d)
%output = output(values=[%e]))");
    REQUIRE(p.kernels.size() == 1);
    CHECK(p.kernels[0].algorithm.inputs.size() == 1);
}

TEST_CASE("a part of a tensor that is read alone is a view: equal parts share a kernel") {
    const Partition p = partition_of(R"(%x : float32[8, 64] = placeholder
%w : float32[64, 16] = placeholder
%a : float32[2, 64] = call_function prims.slice(a=%x, dim=0, start=2, end=4, step=1)
%b : float32[2, 64] = call_function prims.slice(a=%x, dim=0, start=6, end=8, step=1)
%c : float32[2, 16] = call_function tw.dot(a=%a, b=%w, out_dtype=torch.float32)
%d : float32[2, 16] = call_function tw.dot(a=%b, b=%w, out_dtype=torch.float32)
%output = output(values=[%c, %d]))");
    CHECK(p.kernels.size() == 1);
    CHECK(p.calls.size() == 2);
}
