#include <doctest/doctest.h>

#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

namespace {

struct Changed {
    tests::TemporaryFolder folder;
    tests::ArchiveParts whole;
    explicit Changed(const char *path) : whole(tests::ArchiveParts::read(path)) {}

    void refused(const char *entry, const std::string &from, const std::string &to, const char *cause) {
        CAPTURE(to);
        tests::ArchiveParts parts = whole;
        parts.replace(entry, from, to);
        const std::string path = folder.file("changed.pt2");
        parts.write(path);
        CHECK_THROWS_WITH_AS(read_archive(path), doctest::Contains(cause), UserError);
    }
};

}  // namespace

TEST_CASE("what the importer does not support is refused by its name") {
    Changed lstm("apps/models/lstm.pt2");
    lstm.refused("model.json", R"({"user_input": )", R"({"token": )", "inputs of the kind token are not supported");
    lstm.refused("model.json", R"({"user_output": )", R"({"gradient_to_parameter": )",
                 "outputs of the kind gradient_to_parameter are not supported");
    lstm.refused("model.json", R"({"as_bool": true})", R"({"as_custom_obj": {"name": "a", "class_fqn": "b"}})",
                 "arguments of the kind as_custom_obj are not supported");
    lstm.refused("model_weights_config.json", R"("use_pickle": false)", R"("use_pickle": true)",
                 "weight_ih_l0: it is stored as a pickle, which is never executed");
    lstm.refused("model_weights_config.json", R"("dtype": 7)", R"("dtype": 10)", "weight_ih_l0: tensors of complex64 are not supported");
    lstm.refused("model_weights_config.json", R"("dtype": 7)", R"("dtype": 31)", "tensors of float8_e4m3fnuz are not supported");
    lstm.refused("model_weights_config.json", R"("dtype": 7)", R"("dtype": 99)", "unknown element type number 99");
    lstm.refused("model_weights_config.json", R"("layout": 7)", R"("layout": 2)",
                 "sparse and other layouts than strided are not supported");
    lstm.refused("model_weights_config.json", R"("weight_ih_l0": )", R"("other": )", "the archive holds no value for weight_ih_l0");
}

TEST_CASE("sizes that depend on data are refused with the operator that makes them") {
    Changed dynamic("apps/models/gpt2_dynamic.pt2");
    std::string &model = dynamic.whole["model.json"];
    for (std::size_t at = model.find("s48"); at != std::string::npos; at = model.find("s48", at)) {
        model.replace(at, 3, "u48");
    }
    dynamic.refused("model.json", "u48", "u48", "sizes and values that depend on data are not supported: node i (i)");
}
