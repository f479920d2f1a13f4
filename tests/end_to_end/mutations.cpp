// Programs that write their inputs and buffers: what comes out, what the inputs are afterwards, and what a second call sees.
#include <doctest/doctest.h>

#include <map>

#include "autotune/compare.h"
#include "apps/api/tilewright.h"
#include "runtime/host_memory.h"

using namespace tilewright;

namespace {

struct Case {
    std::map<std::string, HostTensor> tensors;
    Model model;

    explicit Case(const std::string &name) : model(load(name)) {
        for (auto &[tensor_name, tensor] : read_safetensors("tests/data/mutations/" + name + ".io.safetensors")) {
            tensors.emplace(tensor_name, tensor);
        }
    }
    static Model load(const std::string &name) {
        Options options;
        options.target = "cpu";
        return Model::load("tests/data/mutations/" + name + ".pt2", options);
    }
    std::vector<HostTensor> inputs() const {
        std::vector<HostTensor> all;
        for (int i = 0; tensors.contains("in" + std::to_string(i)); ++i) {
            all.push_back(tensors.at("in" + std::to_string(i)));
        }
        return all;
    }
    void expect(const std::string &prefix, std::span<const HostTensor> actual) const {
        for (std::size_t i = 0; i < actual.size(); ++i) {
            const std::string name = prefix + std::to_string(i);
            REQUIRE(tensors.contains(name));
            const Comparison comparison = compare(tensors.at(name), actual[i]);
            CHECK_MESSAGE(!comparison.mismatch, name, comparison.mismatch.value_or(""));
        }
    }
};

}  // namespace

TEST_CASE("mutations") {
    for (const std::string name : {"swap", "overlapping_rows", "overlapping_rows_large", "order_of_writes", "in_place_affine", "counter", "outputs", "view_chains", "parts_of_one",
                                   "types_of_writes", "shapes_in_place", "indexed_writes", "keys_of_attention", "norm_in_training"}) {
        CAPTURE(name);
        const Case c(name);
        std::vector<HostTensor> after;
        c.expect("out", c.model.executor().run_host(c.inputs(), &after));
        c.expect("after", after);
        c.expect("in", c.inputs());
        c.expect("second", c.model.run(c.inputs()));
    }
}

TEST_CASE("run() writes mutated inputs in place, whatever their strides") {
    const Case c("swap");
    std::vector<Tensor> inputs;
    for (const HostTensor &input : c.inputs()) {
        const Tensor contiguous = to_tensor(input);
        Tensor transposed = allocate_tensor(contiguous.dtype, contiguous.sizes, {1, contiguous.sizes[0]});
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 3; ++j) {
                reinterpret_cast<float *>(transposed.data)[i + 2 * j] = reinterpret_cast<const float *>(contiguous.data)[i * 3 + j];
            }
        }
        inputs.push_back(transposed);
    }
    c.model.executor().run(inputs);
    c.expect("after", std::vector{to_host_tensor(inputs[0]), to_host_tensor(inputs[1])});
}

TEST_CASE("outputs have PyTorch's strides") {
    const Case c("outputs");
    const std::vector<HostTensor> outputs = c.model.run(c.inputs());
    REQUIRE(outputs.size() == 7);
    CHECK(outputs[0].meta.strides == std::vector<Extent>{4, 1});
    CHECK(outputs[3].meta.strides == std::vector<Extent>{1, 4});
    CHECK(outputs[6].meta.strides == std::vector<Extent>{1, 4});
}
