#include "apps/api/logging.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <string_view>
#include <utility>

namespace tilewright {
namespace {

struct Variable {
    const char *name;
    const char *meaning;
};
constexpr std::array variables = {
    Variable{"TILEWRIGHT_LOG",
             "warn (default), debug: each step of the compiler and its time, passes: also the tile IR after every pass, off"},
    Variable{"XDG_CACHE_HOME", "compiled plans and tuning records are kept in its folder tilewright; default ~/.cache"},
    Variable{"CUDA_HOME", "where the CUDA toolkit is looked for first"},
};

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 6> levels{{
    {"passes", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
}};

}  // namespace

void configure_logging() {
    const char *value = std::getenv("TILEWRIGHT_LOG");
    const std::string level = value && *value ? value : "warn";
    const auto chosen = std::find_if(levels.begin(), levels.end(), [&](const auto &entry) { return entry.first == level; });
    auto logger = spdlog::stderr_logger_mt("tilewright");
    logger->set_pattern("%v");
    logger->set_level(chosen == levels.end() ? spdlog::level::warn : chosen->second);
    spdlog::set_default_logger(std::move(logger));
    if (chosen == levels.end()) {
        spdlog::warn("TILEWRIGHT_LOG={}: there is no such level; use warn, debug, passes or off", level);
    }
}

std::string logging_help() {
    std::string text = "\nEnvironment:\n";
    for (const Variable &variable : variables) {
        text += fmt::format("  {:<15} {}\n", variable.name, variable.meaning);
    }
    return text;
}

}  // namespace tilewright
