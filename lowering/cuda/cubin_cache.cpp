#include "lowering/cuda/cubin_cache.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "runtime/digest.h"
#include "runtime/plan_cache.h"

namespace tilewright {

namespace {

/// One line a function, an empty line, the image.
std::string serialise(const CachedCubin &entry) {
    std::string text;
    for (const FunctionResources &f : entry.functions) {
        text += fmt::format("{} {} {} {} {} {}\n", f.function, f.registers, f.spill_stores, f.spill_loads, f.shared_bytes, f.stack_bytes);
    }
    text += '\n';
    text.append(reinterpret_cast<const char *>(entry.image.data()), entry.image.size());
    return text;
}

CachedCubin parse(const std::string &text) {
    CachedCubin entry;
    std::size_t start = 0;
    while (start < text.size() && text[start] != '\n') {
        const std::size_t end = text.find('\n', start);
        std::istringstream line(text.substr(start, end - start));
        FunctionResources f;
        line >> f.function >> f.registers >> f.spill_stores >> f.spill_loads >> f.shared_bytes >> f.stack_bytes;
        entry.functions.push_back(f);
        start = end + 1;
    }
    const auto *image = reinterpret_cast<const std::byte *>(text.data()) + start + 1;
    entry.image.assign(image, reinterpret_cast<const std::byte *>(text.data()) + text.size());
    return entry;
}

std::string digest_of(const std::string &text) { return Digest().add(text).hex(); }

}  // namespace

CubinCache CubinCache::standard() {
    const std::string folder = PlanCache::standard().folder();
    return CubinCache(folder.empty() ? folder : folder + "/cubin");
}

// A file is the digest of its content in 40 digits, a line break, the content.
std::optional<CachedCubin> CubinCache::find(const std::string &key) const {
    if (folder_.empty()) {
        return std::nullopt;
    }
    std::ifstream file(folder_ + "/" + key, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (text.size() < 42 || text[40] != '\n') {
        return std::nullopt;
    }
    const std::string content = text.substr(41);
    if (digest_of(content) != text.substr(0, 40)) {
        return std::nullopt;
    }
    return parse(content);
}

void CubinCache::store(const std::string &key, const CachedCubin &entry) const {
    if (folder_.empty()) {
        return;
    }
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const std::string content = serialise(entry);
    try {
        write_file_atomically(folder_ + "/" + key, digest_of(content) + "\n" + content);
    } catch (const UserError &) {
        // A cache that cannot be written is no reason to stop.
    }
}

}  // namespace tilewright
