// The one table of the environment variables that Tilewright reads, and its log.
#pragma once

#include <string>

namespace tilewright {

/// Sets the log's level from TILEWRIGHT_LOG and its place, standard error.
void configure_logging();
/// The variables and what they do, as text.
std::string logging_help();

}  // namespace tilewright
