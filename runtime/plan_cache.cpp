#include "runtime/plan_cache.h"

#include <cstdlib>
#include <filesystem>
#include <span>
#include <spdlog/spdlog.h>

#include "dsl/atomic_file.h"
#include "dsl/error.h"
#include "runtime/plan_archive.h"

namespace tilewright {
namespace {

constexpr std::size_t largest_plan = std::size_t{64} << 30;

/// The variable's value where it is an absolute path: by the XDG specification others mean nothing.
std::string absolute_path(const char *variable) {
    const char *value = std::getenv(variable);
    return value && *value == '/' ? value : "";
}

}  // namespace

PlanCache PlanCache::standard() {
    if (const std::string cache = absolute_path("XDG_CACHE_HOME"); !cache.empty()) {
        return PlanCache(cache + "/tilewright");
    }
    const std::string home = absolute_path("HOME");
    return PlanCache(home.empty() ? "" : home + "/.cache/tilewright");
}

std::string PlanCache::path(const std::string &key) const { return folder_ + "/plans/" + key + ".plan"; }

std::optional<Plan> PlanCache::find(const std::string &key) const {
    std::error_code absent;
    if (folder_.empty() || !std::filesystem::exists(path(key), absent)) {
        return std::nullopt;
    }
    std::optional<Plan> plan;
    try {
        const std::string bytes = read_file(path(key), largest_plan);
        plan = load_plan(std::as_bytes(std::span(bytes)));
    } catch (const UserError &failure) {
        spdlog::debug("{}", failure.what());
    }
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
