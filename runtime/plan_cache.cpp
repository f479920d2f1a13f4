#include "runtime/plan_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spdlog/spdlog.h>

#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "runtime/plan_archive.h"

namespace tilewright {

PlanCache PlanCache::standard() {
    if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
        return PlanCache(std::string(cache) + "/tilewright");
    }
    if (const char *home = std::getenv("HOME"); home && *home) {
        return PlanCache(std::string(home) + "/.cache/tilewright");
    }
    return PlanCache("");
}

std::string PlanCache::path(const std::string &key) const {
    return folder_ + "/plans/" + key + ".plan";
}

std::optional<Plan> PlanCache::find(const std::string &key) const {
    std::ifstream file(path(key), std::ios::binary | std::ios::ate);
    if (folder_.empty() || !file) {
        return std::nullopt;
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::optional<Plan> plan = file ? load_plan(bytes) : std::nullopt;
    if (!plan) {
        spdlog::debug("cache entry {} is damaged or another version's; it is built again", path(key));
    }
    return plan;
}

void PlanCache::store(const std::string &key, const Plan &plan) const {
    if (folder_.empty()) {
        return;
    }
    std::error_code error;
    std::filesystem::create_directories(folder_ + "/plans", error);
    const std::vector<std::byte> bytes = save_plan(plan);
    try {
        write_file_atomically(path(key), {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
    } catch (const UserError &failure) {
        spdlog::debug("not cached: {}", failure.what());
    }
}

}  // namespace tilewright
