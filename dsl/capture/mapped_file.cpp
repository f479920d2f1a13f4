#include "dsl/capture/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dsl/error.h"

namespace tilewright {

Bytes map_file(const std::string &path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        user_error("cannot read {}: {}; check the path", path, std::strerror(errno));
    }
    struct stat status = {};
    const bool known = fstat(descriptor, &status) == 0;
    if (!known || !S_ISREG(status.st_mode) || status.st_size == 0) {
        close(descriptor);
        user_error("cannot read {}: it is {}; name a file with content", path, known && S_ISREG(status.st_mode) ? "empty" : "no file");
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    void *address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int reason = errno;
    close(descriptor);
    if (address == MAP_FAILED) {
        user_error("cannot map {}: {}", path, std::strerror(reason));
    }
    return {std::shared_ptr<const std::byte>(static_cast<const std::byte *>(address),
                                             [size](const std::byte *p) { munmap(const_cast<std::byte *>(p), size); }),
            size};
}

Bytes copy_bytes(const std::byte *from, std::size_t size) {
    constexpr std::size_t alignment = 64;
    void *memory = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
    if (memory == nullptr) {
        user_error("no memory for {} bytes", size);
    }
    if (size > 0) {
        std::memcpy(memory, from, size);
    }
    return {std::shared_ptr<const std::byte>(static_cast<const std::byte *>(memory),
                                             [](const std::byte *p) { std::free(const_cast<std::byte *>(p)); }),
            size};
}

Bytes aligned(const Bytes &bytes, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(bytes.data.get()) % alignment == 0 ? bytes : copy_bytes(bytes.data.get(), bytes.size);
}

}  // namespace tilewright
