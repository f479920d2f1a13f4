#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "dsl/schedule/schedule.h"
#include "dsl/schedule/schedule_place.h"

namespace tilewright {

namespace {

constexpr std::size_t size_limit = 256 << 20;  // no schedule is that long: refuse rather than fill the memory

}  // namespace

ScheduleFile read_schedule(const std::string &path) { return parse_schedule(read_file(path, size_limit), path); }

void require_schedule_place(const std::string &path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
        user_error("cannot write {}: {}; check its folder, or choose another place with --out", path, std::strerror(errno));
    }
    std::error_code absent;
    if (std::filesystem::is_directory(path, absent)) {
        user_error("cannot write {}: it is a folder; name a file with --out", path);
    }
    if (!std::filesystem::is_regular_file(path, absent) || std::filesystem::file_size(path, absent) == 0) {
        return;
    }
    try {
        read_schedule(path);
    } catch (const UserError &fault) {
        user_error("{}: the schedule would replace a file that is none ({}); choose another place with --out, or remove the file", path,
                   fault.what());
    }
}

void write_schedule(const ScheduleFile &file, const std::string &path) {
    require_schedule_place(path);
    write_file_atomically(path, print(file));
}

}  // namespace tilewright
