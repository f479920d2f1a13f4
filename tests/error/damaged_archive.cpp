#include <doctest/doctest.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

namespace {

struct Damaged {
    tests::TemporaryFolder folder;
    tests::ArchiveParts whole = tests::ArchiveParts::read("apps/models/lstm.pt2");

    void refused(const char *entry, const std::string &from, const std::string &to, const char *cause) {
        CAPTURE(to);
        tests::ArchiveParts parts = whole;
        parts.replace(entry, from, to);
        refused(parts, cause);
    }
    void refused(const tests::ArchiveParts &parts, const char *cause) {
        const std::string path = folder.file("damaged.pt2");
        parts.write(path);
        CHECK_THROWS_WITH_AS(read_archive(path), doctest::Contains(cause), UserError);
    }
};

}  // namespace

TEST_CASE("entries that are missing or changed are named") {
    Damaged damaged;
    tests::ArchiveParts parts = damaged.whole;
    parts.remove("weight_3");
    damaged.refused(parts, "the entry lstm/data/weights/weight_3 is missing");
    parts = damaged.whole;
    parts["weight_3"].pop_back();
    damaged.refused(parts, "bias_hh_l0: float32[64] does not fit into its storage of 255 bytes");
    parts = damaged.whole;
    parts["model.json"].resize(1000);
    damaged.refused(parts, "no valid JSON at byte 1000: incomplete JSON");

    // The checksum finds a flipped bit in a weight.
    std::string bytes = read_file("apps/models/lstm.pt2");
    const std::string weight = damaged.whole["weight_2"];
    bytes[bytes.find(weight) + 17] ^= 4;
    const std::string path = damaged.folder.file("flipped.pt2");
    write_file_atomically(path, bytes);
    CHECK_THROWS_WITH_AS(read_archive(path), doctest::Contains("the entry lstm/data/weights/weight_2 is damaged (CRC error)"), UserError);
}

TEST_CASE("sizes, strides and offsets are held against the bytes that are there") {
    Damaged damaged;
    const char *config = "model_weights_config.json";
    damaged.refused(config, R"({"as_int": 64}, {"as_int": 12})", R"({"as_int": 64}, {"as_int": 13})",
                    "float32[64, 13] strides=[12, 1] does not fit");
    damaged.refused(config, R"({"as_int": 64}, {"as_int": 12})", R"({"as_int": -64}, {"as_int": 12})",
                    "dimension 0 has the negative size -64");
    damaged.refused(config, R"({"as_int": 64}, {"as_int": 12})", R"({"as_int": 9000000000}, {"as_int": 12})",
                    "dimension 0 has 9000000000 elements; the limit is");
    damaged.refused(config, R"({"as_int": 64}, {"as_int": 12})",
                    R"({"as_int": 2000000000}, {"as_int": 2000000000}, {"as_int": 2000000000})", "strides for 3 sizes");
    damaged.refused(config, R"("strides": [{"as_int": 12})", R"("strides": [{"as_int": 9223372036854775807})", "does not fit");
    damaged.refused(config, R"("strides": [{"as_int": 12})", R"("strides": [{"as_int": -12})", "dimension 0 has the negative stride -12");
    damaged.refused(config, R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": 1})", "offset=1 does not fit");
    damaged.refused(config, R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": -1})", "the negative storage offset -1");
    damaged.refused(config, R"({"as_int": 64}, {"as_int": 12})", R"({"as_expr": {"expr_str": "s0"}}, {"as_int": 12})",
                    "its size s0 is not a constant");
    damaged.refused(config, R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": 1.5})",
                    "should be a 64-bit integer but is double");
    damaged.refused(config, R"("dtype": 7, "sizes": [{"as_int": 64}, {"as_int": 12}])",
                    R"("dtype": 6, "sizes": [{"as_int": 64}, {"as_int": 12}])",
                    "weight_ih_l0: the graph reads float32[64, 12] but the archive holds float16[64, 12]");
}

TEST_CASE("a graph that does not hang together is refused at its node") {
    Damaged damaged;
    const std::string output = R"("output_specs": [{"user_output": {"arg": {"as_tensor": {"name": ")";
    damaged.refused("model.json", output, output + "no_", ", which no earlier instruction defines");
    damaged.refused("model.json", R"("outputs": [{"as_tensor": {"name": "zeros"}}])", R"("outputs": [{"as_tensor": {"name": "ones"}}])",
                    "node zeros: there is no metadata for ones");
    damaged.refused("model.json", R"("tensor_values": {)", R"("tensor_values_": {)", "the field tensor_values is missing");
    damaged.refused("model.json", R"("nodes": [)", R"("nodes": [3, )", "a node should be an object but is int64");
    damaged.refused("model.json", R"("range_constraints": {)", R"("range_constraints": {"s0": {"min_val": 5, "max_val": 2})",
                    "the range of s0 is empty: 5 to 2");
    damaged.refused("model.json", R"("input_specs": [)", R"("input_specs": [)" + std::string(200, '['), ": too deep");
}
