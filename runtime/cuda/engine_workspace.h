// The memory that libraries work in.
#pragma once

#include <cstdint>

namespace tilewright {

/// Each call of a library may use as much; calls of one stream follow each other, so one piece serves them all.
inline constexpr std::int64_t engine_workspace_bytes = 32 << 20;

}  // namespace tilewright
