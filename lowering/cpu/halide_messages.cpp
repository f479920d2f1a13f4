#include "lowering/cpu/halide_messages.h"

#include <Halide.h>
#include <spdlog/spdlog.h>
#include <string_view>

namespace tilewright {
namespace {

class Reporter final : public Halide::CompileTimeErrorReporter {
public:
    void warning(const char *message) override { spdlog::debug("Halide: {}", message); }
    /// Halide does not go on after an error that a reporter was told of: it must not return.
    void error(const char *message) override {
        if (std::string_view(message).starts_with("Internal")) {
            throw Halide::InternalError(message);
        }
        throw Halide::CompileError(message);
    }
};

}  // namespace

void log_halide_warnings() {
    static Reporter reporter;
    static const bool installed = (Halide::set_custom_compile_time_error_reporter(&reporter), true);
    static_cast<void>(installed);
}

}  // namespace tilewright
