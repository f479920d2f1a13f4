// The entries of a zip file: stored ones stay where the file is mapped, deflated ones are unpacked into memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dsl/capture/mapped_file.h"

namespace tilewright {

class ZipArchive {
public:
    /// UserError where the file is no zip file or its directory is damaged.
    explicit ZipArchive(const std::string &path);
    ~ZipArchive();

    const std::vector<std::string> &names() const { return names_; }
    bool contains(const std::string &name) const;
    /// The entry's content, checked against its checksum. UserError names the entry, also where it holds more than `limit` bytes.
    Bytes read(const std::string &name, std::size_t limit = SIZE_MAX) const;
    std::string read_text(const std::string &name, std::size_t limit) const;

private:
    struct Reader;
    struct Entry {
        std::uint64_t index = 0;
        std::uint64_t size = 0;  ///< bytes, unpacked
        bool is_stored = false;
    };
    Entry look_up(const std::string &name, std::size_t limit) const;
    [[noreturn]] void refuse(const std::string &name, const std::string &why) const;

    std::unique_ptr<Reader> reader_;
    std::vector<std::string> names_;
};

}  // namespace tilewright
