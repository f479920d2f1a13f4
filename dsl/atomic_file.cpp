#include "dsl/atomic_file.h"

#include <cerrno>
#include <cstdint>
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

/// Where a link leads, be there a file yet or not.
std::string resolve_link(const std::string &path) {
    constexpr int most_links = 40;
    std::error_code absent, error;
    std::filesystem::path target = path;
    for (int link = 0; link < most_links && std::filesystem::is_symlink(target, absent); ++link) {
        target = target.parent_path() / std::filesystem::read_symlink(target, error);
        if (error) {
            return path;
        }
    }
    return target.string();
}

/// Up to `size` bytes into `content`. 0, or the system's reason.
int read_all(int descriptor, std::size_t size, std::string &content) {
    content.resize(size);
    std::size_t filled = 0;
    while (filled < size) {
        const ssize_t got = read(descriptor, content.data() + filled, size - filled);
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        if (got == 0) {
            break;
        }
        filled += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    content.resize(filled);
    return 0;
}

std::string folder_of(const std::string &path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string &path) : path_(path), target_(resolve_link(path)) {
    struct stat old = {};
    const bool exists = stat(target_.c_str(), &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        user_error("cannot write {}: it is a folder; name a file", path_);
    }
    if (exists && !S_ISREG(old.st_mode)) {
        descriptor_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor_ < 0) {
            fail("cannot write");
        }
        return;
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
    if (exists) {
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
    const bool replaces = !temporary_.empty();
    if (replaces && fsync(descriptor_) != 0) {
        fail("cannot write");
    }
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) {
        fail("cannot write");
    }
    if (!replaces) {
        return;
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
    // A pipe that nobody writes would never open, nor one that somebody keeps open ever end.
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int reason = descriptor < 0 ? errno : 0;
    struct stat status = {};
    std::string content;
    if (reason == 0 && fstat(descriptor, &status) != 0) {
        reason = errno;
    } else if (reason == 0 && !S_ISREG(status.st_mode)) {
        close(descriptor);
        user_error("cannot read {}: it is no regular file; name one", path);
    } else if (reason == 0) {
        reason = static_cast<std::uintmax_t>(status.st_size) > limit
                     ? EFBIG
                     : read_all(descriptor, static_cast<std::size_t>(status.st_size), content);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (reason != 0) {
        user_error("cannot read {}: {}; check the path, the file's permissions and the disk", path, std::strerror(reason));
    }
    return content;
}

}  // namespace tilewright
