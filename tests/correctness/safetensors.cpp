#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <sys/stat.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/safetensors.h"
#include "dsl/error.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

using tests::TemporaryFolder;

TEST_CASE("recorded inputs and outputs are read in the header's order") {
    const NamedTensors tensors = read_safetensors("apps/models/bert.io.safetensors");
    REQUIRE(tensors.size() >= 2);
    CHECK(tensors[0].first == "in0");
    CHECK(tensors[0].second.meta.dtype == DType::int64);
}

TEST_CASE("every element type survives writing and reading, and reads aligned") {
    const TemporaryFolder folder;
    NamedTensors written;
    for (const DType type : {DType::boolean, DType::float64, DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64,
                             DType::uint16, DType::uint32, DType::uint64, DType::float16, DType::bfloat16, DType::float32, DType::complex64,
                             DType::float8_e4m3fn, DType::float8_e5m2, DType::float8_e8m0fnu}) {
        HostTensor tensor = HostTensor::zeros(type, {3, 1});
        std::memset(tensor.mutable_data(), static_cast<int>(type) + 1, tensor.storage_bytes);
        written.emplace_back(name(type), tensor);
    }
    written.emplace_back("empty", HostTensor::zeros(DType::float32, {0, 4}));
    written.emplace_back("scalar", HostTensor::zeros(DType::float32, {}));
    write_safetensors(folder.file("all.safetensors"), written);
    const NamedTensors read = read_safetensors(folder.file("all.safetensors"));
    REQUIRE(read.size() == written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        CAPTURE(written[i].first);
        CHECK(read[i].first == written[i].first);
        CHECK(read[i].second.meta == written[i].second.meta);
        CHECK(reinterpret_cast<std::uintptr_t>(read[i].second.data()) % size_in_bytes(read[i].second.meta.dtype) == 0);
        CHECK(std::memcmp(read[i].second.data(), written[i].second.data(), written[i].second.storage_bytes) == 0);
    }
}

TEST_CASE("tensors with strides are written row by row") {
    const TemporaryFolder folder;
    HostTensor tensor = HostTensor::zeros(DType::int32, {6});
    for (int i = 0; i < 6; ++i) {
        std::memcpy(tensor.mutable_data() + i * 4, &i, 4);
    }
    tensor.meta.sizes = {3, 2};
    tensor.meta.strides = {1, 3};
    write_safetensors(folder.file("t.safetensors"), {{"t", tensor}});
    const HostTensor read = read_safetensors(folder.file("t.safetensors"))[0].second;
    const int expected[] = {0, 3, 1, 4, 2, 5};
    CHECK(std::memcmp(read.data(), expected, sizeof expected) == 0);
}

TEST_CASE("devices and pipes are written as they stand, and only regular files are read") {
    const TemporaryFolder folder;
    std::filesystem::create_symlink("/dev/null", folder.file("link"));
    write_file_atomically(folder.file("link"), "lost");
    CHECK(std::filesystem::is_character_file("/dev/null"));
    CHECK_THROWS_WITH_AS(write_file_atomically("/dev/full", "x"), doctest::Contains("cannot write /dev/full: No space left on device"),
                         UserError);
    CHECK(std::filesystem::is_character_file("/dev/full"));
    REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    for (const std::string &path : {folder.file("pipe"), std::string("/dev/zero"), folder.path().string()}) {
        CHECK_THROWS_WITH_AS(read_file(path), doctest::Contains("it is no regular file; name one"), UserError);
    }
}

TEST_CASE("a file is written whole or not at all") {
    const TemporaryFolder folder;
    const std::string path = folder.file("kept");
    write_file_atomically(path, "old");
    {
        AtomicFile file(path);
        file.write("half of the new");
    }
    CHECK(read_file(path) == "old");
    write_file_atomically(path, "new");
    CHECK(read_file(path) == "new");
    std::filesystem::create_symlink("kept", folder.file("link"));
    write_file_atomically(folder.file("link"), "through the link");
    CHECK(read_file(path) == "through the link");
    std::filesystem::create_symlink("not_there_yet", folder.file("early"));
    write_file_atomically(folder.file("early"), "where the link leads");
    CHECK(std::filesystem::is_symlink(folder.file("early")));
    CHECK(read_file(folder.file("not_there_yet")) == "where the link leads");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 4);
    CHECK_THROWS_WITH(write_file_atomically("/nonexistent/folder/file", ""), doctest::Contains("/nonexistent/folder/file: No such file"));
}
