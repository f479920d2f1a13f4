// The registers and stack that `explain` and the tuner see are those that the cubins themselves state.
#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "lowering/cuda/compile.h"
#include "lowering/pipeline.h"

using namespace tilewright;

namespace {

struct Stated {
    int registers = 0, stack_bytes = 0;  ///< the largest of a cubin's functions
};

template<typename T> T at(const std::vector<std::byte> &image, std::size_t place) {
    T value;
    REQUIRE(place + sizeof value <= image.size());
    std::memcpy(&value, image.data() + place, sizeof value);
    return value;
}

/// Reads the section .nv.info: entries of a format, an attribute, a length, and here a function and its value.
Stated stated_in(const std::vector<std::byte> &image) {
    constexpr std::uint8_t sized_value = 4, frame_size = 0x11, register_count = 0x2f;
    const auto header = at<Elf64_Ehdr>(image, 0);
    const auto section = [&](unsigned number) { return at<Elf64_Shdr>(image, header.e_shoff + number * header.e_shentsize); };
    const std::size_t names = section(header.e_shstrndx).sh_offset;
    Stated stated;
    for (unsigned s = 0; s < header.e_shnum; ++s) {
        const Elf64_Shdr info = section(s);
        if (std::strcmp(reinterpret_cast<const char *>(image.data()) + names + info.sh_name, ".nv.info") != 0) {
            continue;
        }
        for (std::size_t place = info.sh_offset; place < info.sh_offset + info.sh_size;) {
            const auto format = at<std::uint8_t>(image, place), attribute = at<std::uint8_t>(image, place + 1);
            const auto bytes = at<std::uint16_t>(image, place + 2);
            if (format == sized_value && bytes == 8) {
                const auto value = at<std::int32_t>(image, place + 8);
                int *const kept = attribute == register_count ? &stated.registers : attribute == frame_size ? &stated.stack_bytes : nullptr;
                if (kept != nullptr) {
                    *kept = std::max(*kept, value);
                }
            }
            place += format == sized_value ? 4 + bytes : 4;
        }
    }
    return stated;
}

}  // namespace

TEST_CASE("resources are those of the cubins") {
    if (std::string why; !have_cuda_compiler(&why)) {
        MESSAGE("skipped: " << why);
        return;
    }
    Options options;
    options.target = "cuda";
    options.architecture = "sm_90a";
    for (const char *model : {"special", "unet"}) {
        const Compilation compilation = compile_archive(std::string("apps/models/") + model + ".pt2", options);
        int compared = 0;
        for (const CompiledKernel &kernel : compilation.kernels) {
            for (const CodeObject &code : kernel.code) {
                CAPTURE(code.name);
                const Stated stated = stated_in(code.image);
                CHECK(stated.registers == code.registers);
                CHECK(stated.stack_bytes == code.stack_bytes);
                CHECK((code.spill_stores + code.spill_loads == 0 || stated.stack_bytes > 0));
                ++compared;
            }
        }
        CHECK(compared >= 10);
    }
}
