// Errors that a user can mend, and errors that are ours.
#pragma once

#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace tilewright {

/// A mistake in what the user gave us. The message names the thing, the cause and a repair on one line. Exit status 2.
class UserError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A bug of Tilewright. The message says that it is one.
class InternalError : public std::logic_error {
public:
    explicit InternalError(const std::string &what) : std::logic_error("this is a bug in Tilewright: " + what) {}
};

template<typename... Args> [[noreturn]] void user_error(fmt::format_string<Args...> format, Args &&...args) {
    throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template<typename... Args> [[noreturn]] void internal_error(fmt::format_string<Args...> format, Args &&...args) {
    throw InternalError(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws InternalError when a condition that our own code guarantees does not hold.
template<typename... Args> void internal_assert(bool condition, fmt::format_string<Args...> format, Args &&...args) {
    if (!condition) {
        internal_error(format, std::forward<Args>(args)...);
    }
}

}  // namespace tilewright
