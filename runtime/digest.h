// Content hashes: they name cache entries and guard files against damage.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// 160 bits (SHA-1) as 40 hexadecimal digits. For content addressing, not against an adversary.
class Digest {
public:
    Digest();
    ~Digest();
    Digest(const Digest &) = delete;
    Digest &operator=(const Digest &) = delete;
    /// Each piece is preceded by its length, so that pieces cannot run into each other.
    Digest &add(std::string_view piece);
    Digest &add(std::span<const std::byte> piece);
    std::string hex();

private:
    struct State;
    State *state_;
};

/// Names this build of Tilewright: cached code of another build is not used.
const std::string &build_id();

}  // namespace tilewright
