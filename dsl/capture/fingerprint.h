// A key for an archive's content that is cheap to compute: neither the graph is parsed nor weights are read.
#pragma once

#include <string>

namespace tilewright {

/// Covers every entry's name, size and checksum, and the text of the JSON entries (graph and configurations). UserError where the file is
/// no zip file.
std::string archive_fingerprint(const std::string &path);

}  // namespace tilewright
