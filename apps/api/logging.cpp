#include "apps/api/logging.h"

#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace tilewright {
namespace {

struct Variable {
    const char *name;
    const char *meaning;
};
constexpr std::array variables = {
    Variable{"TILEWRIGHT_LOG", "warn (default), debug: each step of the compiler and its time, passes: also the tile IR after every pass, off"},
    Variable{"XDG_CACHE_HOME", "compiled plans and tuning records are kept in its folder tilewright; default ~/.cache"},
    Variable{"CUDA_HOME", "where the CUDA toolkit is looked for first"},
};

}  // namespace

void configure_logging() {
    const char *value = std::getenv("TILEWRIGHT_LOG");
    const std::string level = value ? value : "warn";
    auto logger = spdlog::stderr_logger_mt("tilewright");
    logger->set_pattern("%v");
    logger->set_level(level == "passes" ? spdlog::level::trace : spdlog::level::from_str(level));
    spdlog::set_default_logger(std::move(logger));
}

std::string logging_help() {
    std::string text = "\nEnvironment:\n";
    for (const Variable &variable : variables) {
        text += fmt::format("  {:<15} {}\n", variable.name, variable.meaning);
    }
    return text;
}

}  // namespace tilewright
