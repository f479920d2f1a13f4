// Guards models and data against being replaced by a schedule: a path given as --out by mistake.
#pragma once

#include <string>

namespace tilewright {

/// UserError where the path is a file with content that is no schedule.
void require_schedule_place(const std::string &path);

}  // namespace tilewright
