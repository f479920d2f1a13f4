// What users are told of their mistakes, for tests of the words.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "dsl/error.h"

namespace tilewright::tests {

/// The message of the UserError that `work` ends with; empty where there is none.
inline std::string refusal_of(const std::function<void()> &work) {
    try {
        work();
    } catch (const UserError &error) {
        return error.what();
    }
    return "";
}

inline bool says(const std::string &message, std::string_view part) { return message.find(part) != std::string::npos; }

}  // namespace tilewright::tests
