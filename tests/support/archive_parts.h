// Archives for tests: a real one taken apart, changed and put together again.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::tests {

/// A folder that disappears with the object.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    std::string file(const std::string &name) const { return (path_ / name).string(); }
    const std::filesystem::path &path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Entries of a zip file in order, each with its name and content.
struct ArchiveParts {
    std::vector<std::pair<std::string, std::string>> entries;

    static ArchiveParts read(const std::string &path);
    /// The content of the entry whose name ends so. Fails the test where there is none.
    std::string &operator[](const std::string &ending);
    /// Replaces the first place of `from` in the entry. Fails the test where there is none.
    void replace(const std::string &ending, const std::string &from, const std::string &to);
    void remove(const std::string &ending);
    void write(const std::string &path, bool deflate = false) const;
};

}  // namespace tilewright::tests
