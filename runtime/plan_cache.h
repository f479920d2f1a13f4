// Compiled plans on disk, by content: what was compiled once, by any process, is not compiled again.
#pragma once

#include <optional>
#include <string>

#include "runtime/plan.h"

namespace tilewright {

/// A folder of files named by content, safe among processes: files appear whole (written aside, then renamed), a damaged one counts as
/// absent.
class PlanCache {
public:
    /// Under $XDG_CACHE_HOME/tilewright (else ~/.cache/tilewright). `folder` empty: nothing is kept.
    static PlanCache standard();
    explicit PlanCache(std::string folder) : folder_(std::move(folder)) {}

    std::optional<Plan> find(const std::string &key) const;
    /// Does nothing where the folder cannot be written: a cache is a convenience.
    void store(const std::string &key, const Plan &plan) const;
    const std::string &folder() const { return folder_; }

private:
    std::string path(const std::string &key) const;
    std::string folder_;
};

}  // namespace tilewright
