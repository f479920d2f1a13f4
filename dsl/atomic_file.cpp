#include "dsl/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "dsl/error.h"

namespace tilewright {
namespace {

std::string resolve_link(const std::string &path) {
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) {
        const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
        if (!error) {
            return target.string();
        }
    }
    return path;
}

std::string folder_of(const std::string &path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string &path) : path_(path), target_(resolve_link(path)) {
    std::error_code error;
    if (std::filesystem::is_directory(target_, error)) {
        user_error("cannot write {}: it is a folder; name a file", path_);
    }
    static int serial = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
        temporary_ = fmt::format("{}.{}.{}.tmp", target_, getpid(), __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
        descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ >= 0 || errno != EEXIST) {
            break;
        }
    }
    if (descriptor_ < 0) {
        temporary_.clear();
        fail("cannot write");
    }
    // A file that is replaced keeps its permissions.
    struct stat old = {};
    if (stat(target_.c_str(), &old) == 0) {
        (void)!fchmod(descriptor_, old.st_mode & 07777);
    }
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
    if (!temporary_.empty()) {
        unlink(temporary_.c_str());
    }
}

void AtomicFile::fail(const char *action) const {
    const int reason = errno;
    user_error("{} {}: {}; check that its folder exists, is writable and has space", action, path_, std::strerror(reason));
}

void AtomicFile::write(const void *bytes, std::size_t count) {
    const char *at = static_cast<const char *>(bytes);
    while (count > 0) {
        const ssize_t written = ::write(descriptor_, at, count);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail("cannot write");
        }
        at += written;
        count -= static_cast<std::size_t>(written);
    }
}

void AtomicFile::commit() {
    // The content must be on the disk before the name points at it, or a crash could leave an empty file.
    if (fsync(descriptor_) != 0) {
        fail("cannot write");
    }
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) {
        fail("cannot write");
    }
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
        fail("cannot write");
    }
    temporary_.clear();
    const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}

void write_file_atomically(const std::string &path, std::string_view bytes) {
    AtomicFile file(path);
    file.write(bytes);
    file.commit();
}

std::string read_file(const std::string &path, std::size_t limit) {
    const auto refuse = [&](int reason) { user_error("cannot read {}: {}", path, std::strerror(reason)); };
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        refuse(errno);
    }
    std::string content;
    char piece[65536];
    ssize_t got = 0;
    while ((got = read(descriptor, piece, sizeof piece)) != 0) {
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 || content.size() + static_cast<std::size_t>(got) > limit) {
            const int reason = got < 0 ? errno : EFBIG;
            close(descriptor);
            refuse(reason);
        }
        content.append(piece, static_cast<std::size_t>(got));
    }
    close(descriptor);
    return content;
}

}  // namespace tilewright
