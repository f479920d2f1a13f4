#include "runtime/pixel_map.h"

namespace tilewright {

void add_windows(TensorMapArgument &map, const PixelWindows &windows) {
    map.sizes.insert(map.sizes.end(), windows.lower_corner.begin(), windows.lower_corner.end());
    map.sizes.insert(map.sizes.end(), windows.upper_corner.begin(), windows.upper_corner.end());
    map.box.insert(map.box.end(), windows.steps.begin(), windows.steps.end());
}

std::optional<PixelWindows> windows_of(const TensorMapArgument &map) {
    const std::size_t rank = rank_of(map), space = rank - 2;
    if (map.sizes.size() == rank) {
        return std::nullopt;
    }
    const auto corners = map.sizes.begin() + static_cast<std::ptrdiff_t>(rank);
    return PixelWindows{{corners, corners + static_cast<std::ptrdiff_t>(space)},
                        {corners + static_cast<std::ptrdiff_t>(space), map.sizes.end()},
                        {map.box.begin() + 2, map.box.end()}};
}

std::size_t rank_of(const TensorMapArgument &map) { return map.byte_strides.size() + 1; }

}  // namespace tilewright
