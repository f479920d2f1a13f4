// An index that a tensor does not have: the error names operator, index and size, and the model goes on working.
#include <doctest/doctest.h>

#include "apps/api/tilewright.h"
#include "autotune/inputs/compare.h"
#include "tests/support/refusal.h"

using namespace tilewright;

namespace {

HostTensor ids(std::vector<std::int64_t> values) {
    HostTensor tensor = HostTensor::zeros(DType::int64, {1, static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), reinterpret_cast<std::int64_t *>(tensor.mutable_data()));
    return tensor;
}

std::string message(const Model &model, const HostTensor &input) {
    return tests::refusal_of([&] { model.run(std::vector{input}); });
}

}  // namespace

TEST_CASE("tokens beyond the vocabulary") {
    Options options;
    options.target = "cpu";
    const Model model = Model::load("apps/models/gpt2_dynamic.pt2", options);
    const std::vector<HostTensor> before = model.run(std::vector{ids({1, 2, 210})});
    for (const std::int64_t wrong : {std::int64_t{211}, std::int64_t{-1}, std::int64_t{1} << 40}) {
        const std::string text = message(model, ids({1, 2, wrong}));
        CHECK_MESSAGE(text.find("node embedding") != std::string::npos, text);
        CHECK_MESSAGE(text.find(fmt::format("index {} is out of range for size 211", wrong)) != std::string::npos, text);
        CHECK(text.find('\n') == std::string::npos);
    }
    CHECK_FALSE(compare(before[0], model.run(std::vector{ids({1, 2, 210})})[0]).mismatch.has_value());
}
