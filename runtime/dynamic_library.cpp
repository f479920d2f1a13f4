#include "runtime/dynamic_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "dsl/error.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

/// The folder of the file that holds this code: a program or libtilewright.so.
fs::path own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void *>(&own_folder), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    std::error_code ignored;
    fs::path file = fs::canonical(info.dli_fname, ignored);
    if (file.empty()) {
        file = fs::read_symlink("/proc/self/exe", ignored);
    }
    return file.parent_path();
}

void add_python_packages(const fs::path &environment, std::vector<std::string> &folders) {
    std::error_code error;
    for (const auto &python : fs::directory_iterator(environment / "lib", error)) {
        const fs::path packages = python.path() / "site-packages" / "nvidia";
        for (const auto &package : fs::directory_iterator(packages, error)) {
            folders.push_back((package.path() / "lib").string());
        }
    }
}

std::vector<std::string> search_folders() {
    std::vector<std::string> folders;
    for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char *value = std::getenv(variable)) {
            folders.push_back(std::string(value) + "/lib64");
            folders.push_back(std::string(value) + "/lib");
        }
    }
    folders.emplace_back("/usr/local/cuda/lib64");
    if (const char *environment = std::getenv("VIRTUAL_ENV")) {
        add_python_packages(environment, folders);
    }
    for (fs::path folder = own_folder(); folder.has_relative_path(); folder = folder.parent_path()) {
        if (fs::exists(folder / ".venv")) {
            add_python_packages(folder / ".venv", folders);
            break;
        }
    }
    return folders;
}

}  // namespace

DynamicLibrary::DynamicLibrary(std::vector<std::string> names) : names_(std::move(names)) {
    for (const std::string &name : names_) {
        handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) {
            path_ = name;
            error_.clear();
            return;
        }
        if (error_.empty()) {
            const char *message = dlerror();
            error_ = message != nullptr ? message : "not found";
        }
    }
    static const std::vector<std::string> folders = search_folders();
    for (const std::string &folder : folders) {
        for (const std::string &name : names_) {
            const std::string path = folder + "/" + name;
            std::error_code ignored;
            if (!fs::exists(path, ignored)) {
                continue;
            }
            handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle_ != nullptr) {
                path_ = path;
                error_.clear();
                return;
            }
            error_ = dlerror();
        }
    }
}

void *DynamicLibrary::find(const char *symbol) const { return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr; }

void *DynamicLibrary::require(const char *symbol) const {
    if (handle_ == nullptr) {
        user_error("{} cannot be opened: {}; install it, or name its folder in LD_LIBRARY_PATH or CUDA_HOME", name(), error_);
    }
    void *address = dlsym(handle_, symbol);
    if (address == nullptr) {
        user_error("{} has no function {}: it is too old; install CUDA 12.4 or newer", path_, symbol);
    }
    return address;
}

}  // namespace tilewright
