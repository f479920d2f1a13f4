#include "runtime/digest.h"

#include <boost/uuid/detail/sha1.hpp>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

namespace tilewright {

struct Digest::State {
    boost::uuids::detail::sha1 sha1;
};

Digest::Digest() : state_(new State) {}
Digest::~Digest() { delete state_; }

Digest &Digest::add(std::string_view piece) {
    const std::uint64_t length = piece.size();
    state_->sha1.process_bytes(&length, sizeof length);
    state_->sha1.process_bytes(piece.data(), piece.size());
    return *this;
}

Digest &Digest::add(std::span<const std::byte> piece) {
    return add(std::string_view(reinterpret_cast<const char *>(piece.data()), piece.size()));
}

std::string Digest::hex() {
    unsigned int words[5];
    state_->sha1.get_digest(words);
    return fmt::format("{:08x}{:08x}{:08x}{:08x}{:08x}", words[0], words[1], words[2], words[3], words[4]);
}

namespace {

/// The linker's build-id note of the module that holds `address`.
struct Search {
    std::uintptr_t address;
    std::string found;
};

int visit_module(dl_phdr_info *info, std::size_t, void *data) {
    auto &search = *static_cast<Search *>(data);
    bool holds = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
        holds = holds || (header.p_type == PT_LOAD && search.address >= start && search.address < start + header.p_memsz);
    }
    for (int i = 0; holds && i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        if (header.p_type != PT_NOTE) {
            continue;
        }
        const char *note = reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
        const char *end = note + header.p_memsz;
        while (note + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) fields;
            std::memcpy(&fields, note, sizeof fields);
            const char *name = note + sizeof fields;
            const char *value = name + (fields.n_namesz + 3) / 4 * 4;
            if (fields.n_type == NT_GNU_BUILD_ID && fields.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
                for (std::size_t b = 0; b < fields.n_descsz; ++b) {
                    search.found += fmt::format("{:02x}", static_cast<unsigned char>(value[b]));
                }
                return 1;
            }
            note = value + (fields.n_descsz + 3) / 4 * 4;
        }
    }
    return 0;
}

}  // namespace

const std::string &build_id() {
    static const std::string id = [] {
        Search search{reinterpret_cast<std::uintptr_t>(&build_id), {}};
        dl_iterate_phdr(visit_module, &search);
        return search.found.empty() ? std::string("0.1.0 " __DATE__ " " __TIME__) : search.found;
    }();
    return id;
}

}  // namespace tilewright
