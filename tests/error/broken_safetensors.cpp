#include <cstring>
#include <doctest/doctest.h>
#include <random>

#include "dsl/atomic_file.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

namespace {

void refused(const std::string &header, const char *cause, std::size_t data = 8) {
    CAPTURE(header);
    const tests::TemporaryFolder folder;
    const std::uint64_t length = header.size();
    std::string file(reinterpret_cast<const char *>(&length), 8);
    file += header + std::string(data, '\1');
    write_file_atomically(folder.file("t.safetensors"), file);
    CHECK_THROWS_WITH_AS(read_safetensors(folder.file("t.safetensors")), doctest::Contains(cause), UserError);
    CHECK_THROWS_WITH_AS(read_safetensors(folder.file("t.safetensors")), doctest::Contains("t.safetensors: "), UserError);
}

std::string entry(const char *dtype, const char *shape, const char *offsets) {
    return std::string(R"({"a": {"dtype": ")") + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}";
}

}  // namespace

TEST_CASE("each mistake in a safetensors file is named with its tensor") {
    refused(entry("F32", "[2]", "[0, 4]"), "a: float32[2] takes 8 bytes but has 4");
    refused(entry("F32", "[2]", "[4, 12]"), "a: its data at 4 to 12 lies outside the file's 8 bytes of data");
    refused(entry("F32", "[2]", "[8, 0]"), "lies outside");
    refused(entry("F32", "[-2]", "[0, 8]"), "a: the negative size -2");
    refused(entry("F32", "[4294967296, 4294967296]", "[0, 8]"), "overflows 64 bits");
    refused(entry("F4", "[2]", "[0, 8]"), "a: the element type F4 is not supported");
    refused(entry("F32", "[2.5]", "[0, 8]"), "a size should be a 64-bit integer but is double");
    refused(entry("F32", "[2]", "[0]"), "data_offsets should be two numbers");
    refused(R"({"a": {"dtype": "F32"}})", "the field shape is missing");
    refused(R"({"a": 3})", "an entry should be an object but is int64");
    refused(R"({"a": )", "no valid JSON at byte 6");
    refused("[]", "the header should be an object but is array");
}

TEST_CASE("a header that is longer than the file is refused before anything is allocated") {
    const tests::TemporaryFolder folder;
    for (const std::uint64_t length : {std::uint64_t{17}, std::uint64_t{1} << 40, UINT64_MAX}) {
        std::string file(reinterpret_cast<const char *>(&length), 8);
        file += "{}      ";
        write_file_atomically(folder.file("t.safetensors"), file);
        CHECK_THROWS_WITH_AS(read_safetensors(folder.file("t.safetensors")), doctest::Contains("bytes in a file of 16"), UserError);
    }
    write_file_atomically(folder.file("t.safetensors"), "short");
    CHECK_THROWS_WITH_AS(read_safetensors(folder.file("t.safetensors")), doctest::Contains("too few"), UserError);
    const HostTensor tensor = HostTensor::zeros(DType::float32, {2});
    CHECK_THROWS_WITH_AS(write_safetensors(folder.file("x"), {{"a", tensor}, {"a", tensor}}), doctest::Contains("two tensors are called a"),
                         UserError);
    CHECK_THROWS_WITH_AS(write_safetensors(folder.file("x"), {{"a", HostTensor::zeros(DType::complex128, {2})}}),
                         doctest::Contains("no element type complex128"), UserError);
    CHECK(!std::filesystem::exists(folder.file("x")));
}

TEST_CASE("corrupted safetensors files give a clear error or tensors inside the file") {
    const tests::TemporaryFolder folder;
    const std::string whole = read_file("apps/models/lstm.io.safetensors");
    const std::string path = folder.file("corrupted.safetensors");
    int refused = 0;
    for (unsigned round = 0; round < 500; ++round) {
        std::mt19937 random(round);
        std::string damaged = whole;
        if (round % 4 == 0) {
            damaged.resize(random() % damaged.size());
        } else {
            // The header is where damage matters.
            for (unsigned i = 0; i <= random() % 4; ++i) {
                damaged[random() % 400] = static_cast<char>(round % 2 ? random() : '0' + random() % 10);
            }
        }
        write_file_atomically(path, damaged);
        CAPTURE(round);
        try {
            std::size_t bytes = 0;
            for (const auto &[name, tensor] : read_safetensors(path)) {
                for (std::size_t i = 0; i < tensor.storage_bytes; ++i) {
                    bytes += static_cast<unsigned char>(tensor.storage.get()[i]) != 0;
                }
            }
            CHECK(bytes <= whole.size());
        } catch (const UserError &error) {
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
            ++refused;
        }
    }
    CHECK(refused > 200);
}
