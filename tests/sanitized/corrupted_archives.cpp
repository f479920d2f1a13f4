// A thousand archives with seeded damage: each gives a one-line error or the right result, never a crash, a hang or a huge allocation.
#include <chrono>
#include <cstring>
#include <doctest/doctest.h>
#include <random>
#include <sys/resource.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

namespace {

constexpr int rounds = 1000;
constexpr unsigned seed = 20240611;
using Random = std::mt19937_64;

std::size_t below(Random &random, std::size_t limit) { return static_cast<std::size_t>(random() % limit); }

/// Everything that a reader could tell apart: the graph, and the bytes of all weights.
std::string fingerprint(const Program &program) {
    std::string text = print(program.graph);
    for (const InputSpec &input : program.inputs) {
        text += input.placeholder + input.qualified_name;
        if (input.value) {
            text.append(reinterpret_cast<const char *>(input.value->storage.get()), input.value->storage_bytes);
        }
    }
    return text;
}

void flip_bytes(std::string &bytes, std::size_t from, Random &random) {
    for (std::size_t i = 0, count = 1 + below(random, 8); i < count; ++i) {
        bytes[from + below(random, bytes.size() - from)] ^= static_cast<char>(1 + below(random, 255));
    }
}

void truncate(std::string &bytes, Random &random) { bytes.resize(below(random, bytes.size())); }

/// Writes an absurd number over one in the directory at the archive's end.
void absurd_zip_field(std::string &bytes, Random &random) {
    const std::size_t tail = std::min<std::size_t>(bytes.size(), 2048);
    const std::uint64_t values[] = {0, 1, 0x7fffffff, 0xffffffff, UINT64_MAX, 0x8000000000000000ULL, bytes.size() + 1};
    const std::uint64_t value = values[below(random, std::size(values))];
    const std::size_t width = std::size_t{1} << (1 + below(random, 3));
    std::memcpy(bytes.data() + bytes.size() - tail + below(random, tail - width), &value, width);
}

void absurd_json(std::string &text, Random &random) {
    const char *values[] = {"-1",
                            "9223372036854775807",
                            "-9223372036854775808",
                            "18446744073709551616",
                            "1e308",
                            "4294967296",
                            "null",
                            "[]",
                            "{}",
                            "\"\"",
                            "true",
                            "{\"as_int\": 1000000000000}",
                            "0.5"};
    switch (below(random, 5)) {
        case 0:
        case 1:
        case 2: {  // another value for a number
            std::size_t at = below(random, text.size());
            at = text.find_first_of("0123456789", at);
            if (at != std::string::npos) {
                const std::size_t end = text.find_first_not_of("0123456789", at);
                text.replace(at, (end == std::string::npos ? text.size() : end) - at, values[below(random, std::size(values))]);
            }
            return;
        }
        case 3: {  // a part is missing
            const std::size_t at = below(random, text.size());
            text.erase(at, 1 + below(random, 60));
            return;
        }
        default: {  // a part stands twice
            const std::size_t at = below(random, text.size());
            text.insert(at, text.substr(below(random, text.size()), 1 + below(random, 200)));
        }
    }
}

}  // namespace

TEST_CASE("corrupted archives give a clear error or the right result") {
    const tests::TemporaryFolder folder;
    const char *files[] = {"apps/models/lstm.pt2", "apps/models/special.pt2", "apps/models/gpt2_dynamic.pt2"};
    std::string bytes[3], expected[3];
    tests::ArchiveParts parts[3];
    for (int i = 0; i < 3; ++i) {
        bytes[i] = read_file(files[i]);
        parts[i] = tests::ArchiveParts::read(files[i]);
        expected[i] = fingerprint(read_archive(files[i]));
    }
    int refused = 0, right = 0;
    for (int round = 0; round < rounds; ++round) {
        Random random(seed + static_cast<unsigned>(round));
        const std::size_t file = below(random, 3);
        const std::size_t kind = below(random, 6);
        CAPTURE(round);
        CAPTURE(kind);
        const std::string path = folder.file("corrupted.pt2");
        if (kind < 4) {
            std::string damaged = bytes[file];
            switch (kind) {
                case 0:
                    truncate(damaged, random);
                    break;
                case 1:
                    flip_bytes(damaged, 0, random);
                    break;
                case 2:
                    flip_bytes(damaged, damaged.size() - std::min<std::size_t>(damaged.size(), 2048), random);
                    break;
                default:
                    absurd_zip_field(damaged, random);
                    break;
            }
            write_file_atomically(path, damaged);
        } else {
            tests::ArchiveParts damaged = parts[file];
            absurd_json(damaged[kind == 4 ? "models/model.json" : "model_weights_config.json"], random);
            damaged.write(path);
        }
        const auto start = std::chrono::steady_clock::now();
        try {
            Program program = read_archive(path);
            // Behind a checksum that fits, other content is another program, which later steps must survive too.
            if (kind < 4) {
                CHECK(fingerprint(program) == expected[file]);
            } else {
                fingerprint(program);
                functionalize(program);
                decompose(program);
            }
            ++right;
        } catch (const UserError &error) {
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
            ++refused;
        }
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    }
    CHECK(refused > rounds / 4);
    CHECK(right > rounds / 20);
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    CHECK(usage.ru_maxrss < 2'000'000);  // KiB
}
