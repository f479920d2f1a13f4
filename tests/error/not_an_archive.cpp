#include <doctest/doctest.h>

#include "dsl/atomic_file.h"
#include "dsl/capture/archive.h"
#include "dsl/error.h"
#include "tests/support/archive_parts.h"

using namespace tilewright;

namespace {
void refused(const std::string &path, const char *cause) {
    CHECK_THROWS_WITH_AS(read_archive(path), doctest::Contains(cause), UserError);
    CHECK_THROWS_WITH_AS(read_archive(path), doctest::Contains(path.c_str()), UserError);
}
}  // namespace

TEST_CASE("a file that is no archive of torch.export is refused with what to do") {
    const tests::TemporaryFolder folder;
    refused(folder.file("missing.pt2"), "No such file or directory; check the path");
    refused(folder.path().string(), "it is no file");
    write_file_atomically(folder.file("empty.pt2"), "");
    refused(folder.file("empty.pt2"), "it is empty");
    write_file_atomically(folder.file("text.pt2"), std::string(5000, 'x'));
    refused(folder.file("text.pt2"), "is no readable archive");

    tests::ArchiveParts saved;
    saved.entries = {{"model/data.pkl", "x"}, {"model/version", "3"}};
    saved.write(folder.file("saved.pt2"));
    refused(folder.file("saved.pt2"), "it looks like a file of torch.save or torch.jit.save; write it with torch.export.save");
}

TEST_CASE("the right and the wrong kind of export") {
    const tests::TemporaryFolder folder;
    const tests::ArchiveParts whole = tests::ArchiveParts::read("apps/models/lstm.pt2");
    const std::string path = folder.file("changed.pt2");
    const auto changed = [&](const char *entry, const char *from, const char *to, const char *cause) {
        tests::ArchiveParts parts = whole;
        parts.replace(entry, from, to);
        parts.write(path);
        refused(path, cause);
    };
    whole.write(path, true);
    CHECK(read_archive(path).inputs.size() == 9);
    changed("archive_format", "pt2", "pt3", "the archive format is 'pt3'; only 'pt2'");
    changed("byteorder", "little", "big", "the byte order is 'big'; export the model on a little-endian machine");
    changed("model.json", R"("major": 8)", R"("major": 9)",
            "schema is 9.17 (PyTorch 2.11.0+cu130); schema 8 is read: export the model with PyTorch 2.11 to 2.15");
    tests::ArchiveParts newer = whole;
    newer.replace("model.json", R"("minor": 17)", R"("minor": 20)");
    newer.write(path);
    CHECK(read_archive(path).inputs.size() == 9);

    tests::ArchiveParts several = whole;
    several.entries.emplace_back("lstm/models/second.json", "{}");
    several.write(path);
    refused(path, "holds 2 models (model, second); save each in an archive of its own");
    tests::ArchiveParts none = whole;
    none.remove("models/model.json");
    none.write(path);
    refused(path, "holds no model");
}
