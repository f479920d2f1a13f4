#include "autotune/search/plan_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "dsl/error.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr const char *prefix = "tilewright-plans-";

int open_folder(const std::string &path) { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

/// Folders that no living process has locked.
void remove_abandoned(const fs::path &parent) {
    std::error_code ignored;
    for (fs::directory_iterator entry(parent, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
        if (!entry->path().filename().string().starts_with(prefix)) {
            continue;
        }
        const int folder = open_folder(entry->path().string());
        if (folder < 0) {
            continue;
        }
        if (::flock(folder, LOCK_EX | LOCK_NB) == 0) {
            std::error_code of_one;
            fs::remove_all(entry->path(), of_one);
        }
        ::close(folder);
    }
}

}  // namespace

PlanFolder::PlanFolder() {
    std::error_code ignored;
    const fs::path parent = fs::temp_directory_path(ignored);
    remove_abandoned(parent);
    constexpr int attempts = 16;  // another process may find the folder before it is locked, and remove it
    for (int i = 0; i < attempts; ++i) {
        path_ = (parent / (std::string(prefix) + "XXXXXX")).string();
        if (!::mkdtemp(path_.data())) {
            break;
        }
        lock_ = open_folder(path_);
        if (lock_ < 0) {
            continue;
        }
        ::flock(lock_, LOCK_EX);  // a file system without locks has none that are taken for abandoned either
        if (fs::exists(path_, ignored)) {
            return;
        }
        ::close(lock_);
    }
    user_error("no temporary folder can be made in {}; free space there or set TMPDIR", parent.string());
}

PlanFolder::~PlanFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    ::close(lock_);
}

std::string PlanFolder::next() { return fmt::format("{}/{}.plan", path_, files_++); }

}  // namespace tilewright
