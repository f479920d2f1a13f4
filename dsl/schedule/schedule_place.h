// Tells before a search whether its schedule can be written, and guards models and data against being replaced by one.
#pragma once

#include <string>

namespace tilewright {

/// UserError where the folder cannot be written, or the path is a file with content that is no schedule.
void require_schedule_place(const std::string &path);

}  // namespace tilewright
