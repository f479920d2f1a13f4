// Places of an algorithm's stages by name, for walks that look up many.
#pragma once

#include <string>
#include <unordered_map>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

class StageNumbers {
public:
    explicit StageNumbers(const Algorithm &algorithm) {
        for (const Stage &stage : algorithm.stages) {
            numbers_.emplace(stage.name(), static_cast<int>(numbers_.size()));
        }
    }

    /// -1 where no stage has the name.
    int operator[](const std::string &name) const {
        const auto found = numbers_.find(name);
        return found == numbers_.end() ? -1 : found->second;
    }

private:
    std::unordered_map<std::string, int> numbers_;
};

}  // namespace tilewright
