// A file whose bytes are read where the operating system maps them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tilewright {

/// Bytes that live as long as the pointer does: a part of a mapped file or memory of their own.
struct Bytes {
    std::shared_ptr<const std::byte> data;
    std::size_t size = 0;
};

/// Maps a file for reading. UserError where it cannot be opened, is no file or is empty.
Bytes map_file(const std::string &path);

/// Memory of one's own with a copy, aligned for every element type.
Bytes copy_bytes(const std::byte *from, std::size_t size);

/// The same bytes at an address that is a multiple of `alignment`: copied where they do not lie so.
Bytes aligned(const Bytes &bytes, std::size_t alignment);

}  // namespace tilewright
