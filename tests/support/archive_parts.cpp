#include "tests/support/archive_parts.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <unistd.h>
#include <zip.h>

#include "dsl/capture/zip_archive.h"

namespace tilewright::tests {

TemporaryFolder::TemporaryFolder() {
    static std::atomic<int> serial = 0;
    path_ = std::filesystem::temp_directory_path() / ("tilewright_test_" + std::to_string(getpid()) + "_" + std::to_string(serial++));
    std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

ArchiveParts ArchiveParts::read(const std::string &path) {
    const ZipArchive archive(path);
    ArchiveParts parts;
    for (const std::string &name : archive.names()) {
        parts.entries.emplace_back(name, archive.read_text(name, 1 << 28));
    }
    return parts;
}

std::string &ArchiveParts::operator[](const std::string &ending) {
    for (auto &[name, content] : entries) {
        if (name.ends_with(ending)) {
            return content;
        }
    }
    throw std::logic_error("the test archive has no entry " + ending);
}

void ArchiveParts::replace(const std::string &ending, const std::string &from, const std::string &to) {
    std::string &content = (*this)[ending];
    const std::size_t place = content.find(from);
    if (place == std::string::npos) {
        throw std::logic_error("the entry " + ending + " of the test archive does not contain " + from);
    }
    content.replace(place, from.size(), to);
}

void ArchiveParts::remove(const std::string &ending) {
    std::erase_if(entries, [&](const auto &entry) { return entry.first.ends_with(ending); });
}

void ArchiveParts::write(const std::string &path, bool deflate) const {
    int error = 0;
    zip_t *zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (zip == nullptr) {
        throw std::runtime_error("cannot write " + path);
    }
    for (const auto &[name, content] : entries) {
        zip_source_t *source = zip_source_buffer(zip, content.data(), content.size(), 0);
        const zip_int64_t index = zip_file_add(zip, name.c_str(), source, ZIP_FL_ENC_UTF_8);
        if (index < 0) {
            zip_source_free(source);
            zip_discard(zip);
            throw std::runtime_error("cannot add " + name);
        }
        zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    if (zip_close(zip) != 0) {
        zip_discard(zip);
        throw std::runtime_error("cannot write " + path);
    }
}

}  // namespace tilewright::tests
