// Sends Halide's warnings to the log; they speak of schedules in ways that only its own users understand.
#pragma once

namespace tilewright {

/// Takes effect once for the process; Halide's errors go on being exceptions.
void log_halide_warnings();

}  // namespace tilewright
