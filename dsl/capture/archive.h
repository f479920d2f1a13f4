// Reads the archive that torch.export.save writes (.pt2).
#pragma once

#include <string>

#include "dsl/graph/program.h"

namespace tilewright {

/// A captured program with its weights. Weights are mapped from the file, which stays open as long as any of them lives; tied weights
/// share their storage. Nothing in the archive is executed. Symbolic sizes stand directly in arguments and metadata; instructions that
/// only compute or check sizes are gone. UserError on one line for whatever is missing, damaged or not supported.
Program read_archive(const std::string &path);

}  // namespace tilewright
