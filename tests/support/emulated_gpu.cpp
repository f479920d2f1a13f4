#include "tests/support/emulated_gpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "dsl/error.h"

namespace tilewright {

void use_emulated_gpu() {
    const char *binaries = std::getenv("TILEWRIGHT_BINARY_DIR");
    const std::string path = std::string(binaries != nullptr ? binaries : "build") + "/emulated_driver/libcuda.so.1";
    // The dynamic linker gives later opens of libcuda.so.1 this one, which has that name.
    internal_assert(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr, "{} cannot be opened: build the target tests_emulated_driver", path);
}

}  // namespace tilewright
