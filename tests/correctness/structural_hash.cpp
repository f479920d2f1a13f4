// The structural hash leaves names, extents and the order of declarations out, and nothing else.
#include <chrono>
#include <doctest/doctest.h>

#include "dsl/algorithm/hash.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"

using namespace tilewright;

namespace {

Hash hash_of(std::string_view lines) { return structural_hash(translate(tests::program_from(lines)).algorithm); }

const char *const scaled_sum =
    "%x : float32[8, 16] = placeholder\n%y : float32[8, 16] = placeholder\n"
    "%e : float32[8, 16] = call_function prims.exp(a=%x)\n"
    "%p : float32[8, 16] = call_function prims.mul(a=%e, b=%y)\n"
    "%s : float32[8] = call_function prims.sum(a=%p, dims=[1])\n"
    "%output = output(values=[%s])";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

TEST_CASE("names, extents and the order of inputs leave the hash alone") {
    const Hash hash = hash_of(scaled_sum);
    CHECK(hash_of(replaced(replaced(scaled_sum, "%x", "%weight"), "%p", "%product")) == hash);
    CHECK(hash_of(replaced(scaled_sum, "16]", "4096]")) == hash);
    CHECK(hash_of(replaced(scaled_sum, "16]", "s0]")) == hash);
    const std::string x = "%x : float32[8, 16] = placeholder\n", y = "%y : float32[8, 16] = placeholder\n";
    CHECK(hash_of(replaced(scaled_sum, x + y, y + x)) == hash);
    CHECK(Hash::parse(hash.to_string()) == hash);
    CHECK(!Hash::parse("12"));
}

TEST_CASE("operators, types, layouts, which input is read where, and equality of extents change it") {
    const Hash hash = hash_of(scaled_sum);
    CHECK(hash_of(replaced(scaled_sum, "prims.exp", "prims.tanh")) != hash);
    CHECK(hash_of(replaced(scaled_sum, "float32", "float64")) != hash);
    CHECK(hash_of(replaced(scaled_sum, "b=%y", "b=%x")) != hash);
    CHECK(hash_of(replaced(scaled_sum, "8", "16")) != hash);
    CHECK(hash_of(replaced(scaled_sum, "%y : float32[8, 16]", "%y : float32[8, 16] strides=[1, 8]")) != hash);
    CHECK(hash_of(replaced(scaled_sum, "%y : float32[8, 16]", "%y : float32[8, 16] strides=[0, 1]")) != hash);
}

TEST_CASE("the signature lists the extents by first visit") {
    std::vector<Extent> signature = extent_signature(translate(tests::program_from(scaled_sum)).algorithm);
    CHECK(signature == std::vector<Extent>{8, 16});
}

TEST_CASE("an expression that shares its parts is hashed once a part") {
    Halide::Func func = named_func("doubled");
    Halide::Var d0("d0");
    Halide::ImageParam input(Halide::Float(32), 1, "x");
    Halide::Expr value = read(input, {d0});
    for (int i = 0; i < 60; i++) {
        value = value + value;  // 2^60 terms as a tree
    }
    func(d0) = value;
    Algorithm algorithm;
    algorithm.inputs.push_back({input, TensorMeta::contiguous(DType::float32, {4}), "x"});
    algorithm.stages.push_back({func, {4}, {}, "test", ""});
    algorithm.outputs.push_back({"out0", "doubled", 0, TensorMeta::contiguous(DType::float32, {4})});
    const auto start = std::chrono::steady_clock::now();
    verify(algorithm);
    structural_hash(algorithm);
    CHECK(print(algorithm).size() < 10000);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
