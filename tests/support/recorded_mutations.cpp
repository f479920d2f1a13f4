#include "tests/support/recorded_mutations.h"

#include <doctest/doctest.h>

#include "autotune/inputs/compare.h"

namespace tilewright::tests {

namespace {

const std::string folder = "tests/data/mutations/";

Model load(const std::string &name, const std::string &target) {
    Options options;
    options.target = target;
    return Model::load(folder + name + ".pt2", options);
}

}  // namespace

RecordedMutation::RecordedMutation(const std::string &name, const std::string &target) : model_(load(name, target)) {
    for (auto &[tensor_name, tensor] : read_safetensors(folder + name + ".io.safetensors")) {
        tensors_.emplace(tensor_name, tensor);
    }
}

std::vector<HostTensor> RecordedMutation::inputs() const {
    std::vector<HostTensor> all;
    for (int i = 0; tensors_.contains("in" + std::to_string(i)); ++i) {
        all.push_back(tensors_.at("in" + std::to_string(i)));
    }
    return all;
}

void RecordedMutation::expect(const std::string &prefix, const std::vector<HostTensor> &actual) const {
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const std::string name = prefix + std::to_string(i);
        REQUIRE(tensors_.contains(name));
        const Comparison comparison = compare(tensors_.at(name), actual[i]);
        CHECK_MESSAGE(!comparison.mismatch, name, comparison.mismatch.value_or(""));
    }
}

void check_recorded_mutations(const std::string &target) {
    for (const std::string name :
         {"swap", "overlapping_rows", "overlapping_rows_large", "order_of_writes", "in_place_affine", "counter", "outputs", "view_chains",
          "parts_of_one", "types_of_writes", "shapes_in_place", "indexed_writes", "keys_of_attention", "norm_in_training"}) {
        CAPTURE(name);
        const RecordedMutation program(name, target);
        std::vector<HostTensor> after;
        program.expect("out", program.model().executor().run_host(program.inputs(), &after));
        program.expect("after", after);
        program.expect("in", program.inputs());
        program.expect("second", program.model().run(program.inputs()));
    }
}

}  // namespace tilewright::tests
