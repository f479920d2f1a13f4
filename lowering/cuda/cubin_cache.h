// Compiled cubins on disk with their resource report, by content; safe among processes.
#pragma once

#include <optional>
#include <string>

#include "lowering/cuda/compile.h"

namespace tilewright {

struct CachedCubin {
    std::vector<std::byte> image;
    std::vector<FunctionResources> functions;
};

/// A folder of files named by key. Files appear whole; a damaged one counts as absent.
class CubinCache {
public:
    static CubinCache standard();  ///< "cubin" under the folder of PlanCache::standard()
    explicit CubinCache(std::string folder) : folder_(std::move(folder)) {}

    std::optional<CachedCubin> find(const std::string &key) const;
    void store(const std::string &key, const CachedCubin &entry) const;

private:
    std::string folder_;
};

}  // namespace tilewright
