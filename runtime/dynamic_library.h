// Shared libraries that are opened while running, so that one binary serves machines with and without them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// An opened library; it stays open until the process ends. Looked for under its names, in this order: where the dynamic linker looks,
/// $CUDA_HOME and $CUDA_PATH, /usr/local/cuda, and the nvidia packages of a Python environment beside the program.
class DynamicLibrary {
public:
    explicit DynamicLibrary(std::vector<std::string> names);

    explicit operator bool() const { return handle_ != nullptr; }
    /// As dlopen gave it, for libraries that look functions up themselves.
    void *handle() const { return handle_; }
    const std::string &path() const { return path_; }
    const std::string &name() const { return names_.front(); }
    /// Why it could not be opened; empty where it was.
    const std::string &error() const { return error_; }

    /// An address, as a function pointer of whatever type it is assigned to.
    struct Symbol {
        void *address;
        template<typename Function> operator Function *() const { return reinterpret_cast<Function *>(address); }
    };
    /// UserError where the library is missing, or too old to have the function.
    Symbol operator[](const char *symbol) const { return {require(symbol)}; }
    /// nullptr instead of an error.
    void *find(const char *symbol) const;

private:
    void *require(const char *symbol) const;
    std::vector<std::string> names_;
    void *handle_ = nullptr;
    std::string path_, error_;
};

}  // namespace tilewright
