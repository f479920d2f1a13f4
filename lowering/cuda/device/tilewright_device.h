// What emitted kernels are written in: PyTorch's scalar semantics, 16-byte accesses, warp and block collectives. NVRTC compiles it for
// the GPU and a C++ compiler for the host, where host/intrinsics.h stands in for the hardware and checks every access and barrier.
#pragma once

#if defined(__CUDACC__)
#include "intrinsics.h"
#else
#include "host/intrinsics.h"
#endif
#include "async_copy.h"
#include "atomic.h"
#include "block.h"
#include "collective.h"
#include "combiners.h"
#include "compare.h"
#include "convert.h"
#include "copy_ahead.h"
#include "fast_math.h"
#include "float8.h"
#include "index.h"
#include "math_float.h"
#include "math_integer.h"
#include "math_special.h"
#include "memory.h"
#include "pixel_copy.h"
#include "row_exchange.h"
#include "sort_digits.h"
#include "sort_key.h"
#include "sort_passes.h"
#include "sort_select.h"
#include "sort_warp.h"
#include "streaming.h"
#include "tensor_core.h"
#include "unaligned.h"
#include "warp.h"
