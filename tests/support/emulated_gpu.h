// A GPU for tests on machines without one: the emulated driver, opened before anything asks for the real one.
#pragma once

namespace tilewright {

/// From now on libcuda.so.1 is the emulated driver. Called before the first use of the GPU in a test's process.
void use_emulated_gpu();

}  // namespace tilewright
