// The text of the device headers (lowering/cuda/device), embedded when the library is built.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

struct DeviceHeader {
    std::string name;  ///< as kernels include it: "tilewright_device.h", "host/intrinsics.h"
    std::string text;
};
const std::vector<DeviceHeader> &device_headers();
/// Of all of them, taken when the library was built: hashing them takes longer than finding a cubin.
const std::string &device_headers_digest();

}  // namespace tilewright
