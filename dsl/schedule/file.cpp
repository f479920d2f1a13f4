#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dsl/error.h"
#include "dsl/schedule/schedule.h"

namespace tilewright {

namespace {

constexpr off_t size_limit = 256 << 20;  // no schedule is that long: refuse rather than fill the memory

class FileDescriptor {
public:
    explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
    FileDescriptor(const FileDescriptor &) = delete;
    ~FileDescriptor() { close(); }
    int get() const { return descriptor_; }
    int close() {
        const int result = descriptor_ >= 0 ? ::close(descriptor_) : 0;
        descriptor_ = -1;
        return result;
    }

private:
    int descriptor_;
};

std::string reason() {
    return std::strerror(errno);
}

bool write_all(int descriptor, const std::string &text) {
    std::size_t written = 0;
    while (written < text.size()) {
        const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        written += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return true;
}

}  // namespace

ScheduleFile read_schedule(const std::string &path) {
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
        user_error("{}: the schedule file cannot be opened ({}); name an existing file, or write one with 'tilewright autotune'", path,
                   reason());
    }
    if (!S_ISREG(status.st_mode) || status.st_size > size_limit) {
        user_error("{}: this is no schedule file; name one that 'tilewright autotune' wrote", path);
    }
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + filled, text.size() - filled);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            user_error("{}: the schedule file cannot be read ({}); check the disk and the file's permissions", path, reason());
        }
        if (count == 0) {
            break;
        }
        filled += static_cast<std::size_t>(count);
    }
    text.resize(filled);
    return parse_schedule(text, path);
}

void write_schedule(const ScheduleFile &file, const std::string &path) {
    const std::string text = print(file);
    // The name holds the process, so that two that write the same file do not write into each other's.
    const std::string fresh = fmt::format("{}.{}.new", path, ::getpid());
    FileDescriptor descriptor(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) {
        user_error("{}: the schedule cannot be written ({}); choose another place with --out", path, reason());
    }
    const bool written = write_all(descriptor.get(), text) && ::fsync(descriptor.get()) == 0 && descriptor.close() == 0;
    if (!written || ::rename(fresh.c_str(), path.c_str()) != 0) {
        const std::string why = reason();
        ::unlink(fresh.c_str());
        user_error("{}: the schedule cannot be written ({}); free space there, or choose another place with --out", path, why);
    }
}

}  // namespace tilewright
