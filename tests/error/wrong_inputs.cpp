// Inputs that do not fit the program, and their messages.
#include <doctest/doctest.h>

#include "runtime/bind_symbols.h"
#include "tests/support/refusal.h"

using namespace tilewright;

namespace {

Plan two_inputs() {
    const Extent batch = Extent::symbol("s0");
    const Extent half = Extent::symbol("s1");
    Plan plan;
    plan.symbols = {{"s0", {2, 8}}, {"s1", {1, 100}}};
    plan.buffers = {{PlanBuffer::Kind::input, "ids", TensorMeta::contiguous(DType::int64, {batch, half * 2}), 0},
                    {PlanBuffer::Kind::input, "mask", TensorMeta::contiguous(DType::boolean, {batch, 4}), 1}};
    plan.user_inputs = {0, 1};
    plan.index_sites = {{"node embedding: aten.embedding.default, dimension 0 of weight"}};
    return plan;
}

Tensor tensor(DType dtype, std::vector<std::int64_t> sizes) {
    return {dtype, sizes, std::vector<std::int64_t>(sizes.size(), 1), nullptr, nullptr};
}

std::string message(const std::vector<Tensor> &inputs) {
    return tests::refusal_of([&] { bind_symbols(two_inputs(), inputs); });
}

}  // namespace

TEST_CASE("inputs that fit give the symbols their values") {
    const std::vector<Tensor> inputs{tensor(DType::int64, {3, 10}), tensor(DType::boolean, {3, 4})};
    CHECK(bind_symbols(two_inputs(), inputs) == SymbolValues{{"s0", 3}, {"s1", 5}});
}

TEST_CASE("inputs that do not fit are named") {
    const Tensor mask = tensor(DType::boolean, {3, 4});
    CHECK(message({mask}) == "1 input given where the model takes 2");
    CHECK(message({tensor(DType::int32, {3, 10}), mask}) ==
          "input 0 \"ids\": dtype is int32 where the model wants int64; convert the tensor");
    CHECK(message({tensor(DType::int64, {3}), mask}) ==
          "input 0 \"ids\": 1 dimensions, sizes [3], where the model wants 2, sizes [s0, s1*2]");
    CHECK(message({tensor(DType::int64, {9, 10}), tensor(DType::boolean, {9, 4})}) ==
          "input 0 \"ids\": dimension 0 gives s0 = 9, outside the range [2, 8] that the model was exported with");
    CHECK(message({tensor(DType::int64, {3, 11}), mask}) == "input 0 \"ids\": size 11 of dimension 1 gives no whole value for s1 in s1*2");
    CHECK(message({tensor(DType::int64, {3, 10}), tensor(DType::boolean, {4, 4})}) ==
          "input 1 \"mask\": size of dimension 0 is 4 where the model wants 3 (s0, bound by the other inputs' sizes)");
    CHECK(message({tensor(DType::int64, {3, 10}), tensor(DType::boolean, {3, 5})}) ==
          "input 1 \"mask\": size of dimension 1 is 5 where the model wants 4");
}

TEST_CASE("an index out of range names site, index and size") {
    CHECK(index_error_message(two_inputs(), 0, -2, 5) ==
          "node embedding: aten.embedding.default, dimension 0 of weight: index -2 is out of range for size 5; correct the indices given "
          "to the "
          "model");
}
