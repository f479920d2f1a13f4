// Runs the tilewright command as a user would.
#pragma once

#include <string>
#include <vector>

namespace tilewright::test {

struct CommandResult {
    int status = -1;     ///< exit status; 128 + signal where it was killed
    std::string output;  ///< standard output
    std::string errors;  ///< standard error
};

/// `build/bin/tilewright arguments…` in the current folder.
CommandResult run_tilewright(const std::vector<std::string> &arguments);

/// The build folder (TILEWRIGHT_BINARY_DIR, else "build"), and a folder below it for files of a test, emptied first.
std::string build_folder();
std::string scratch_folder(const std::string &name);

}  // namespace tilewright::test
