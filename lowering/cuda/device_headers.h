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

}  // namespace tilewright
