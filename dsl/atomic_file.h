// Files that are written whole or not at all: a reader sees the old content or the new one, never a part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilewright {

/// A file that appears under its name when commit() returns, and leaves no trace otherwise. It is written beside its final place,
/// synced and renamed; only a pipe or a device is written as it stands. UserError names the path and the system's reason.
class AtomicFile {
public:
    explicit AtomicFile(const std::string &path);
    ~AtomicFile();
    AtomicFile(const AtomicFile &) = delete;
    AtomicFile &operator=(const AtomicFile &) = delete;

    void write(const void *bytes, std::size_t count);
    void write(std::string_view text) { write(text.data(), text.size()); }
    void commit();

private:
    [[noreturn]] void fail(const char *action) const;
    std::string path_;       ///< as the user gave it
    std::string target_;     ///< what it resolves to, where it is a symbolic link
    std::string temporary_;  ///< beside the target; empty once committed, and where the target is written as it stands
    int descriptor_ = -1;
};

void write_file_atomically(const std::string &path, std::string_view bytes);

/// The whole of a regular file. UserError names the path and the system's reason; also where it holds more than `limit` bytes.
std::string read_file(const std::string &path, std::size_t limit = std::size_t{1} << 30);

}  // namespace tilewright
