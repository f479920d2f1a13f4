// A structural hash of an algorithm: the key under which schedules and tuning records are kept.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/algorithm/algorithm.h"

namespace tilewright {

struct Hash {
    std::uint64_t value = 0;
    std::string to_string() const;  ///< 16 hexadecimal digits
    static std::optional<Hash> parse(std::string_view text);
    friend auto operator<=>(const Hash &, const Hash &) = default;
};

/// Covers expressions, types, literals, rank, the class of the strides (contiguous, permuted, broadcast, general) and which extents
/// are equal; not names, extents or weights.
Hash structural_hash(const Algorithm &algorithm);
/// The extents that structural_hash() leaves out, in a canonical order: with the hash they determine the code.
std::vector<Extent> extent_signature(const Algorithm &algorithm);

}  // namespace tilewright
