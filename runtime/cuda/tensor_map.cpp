#include <algorithm>

#include "dsl/error.h"
#include "runtime/cuda/launch.h"
#include "runtime/pixel_map.h"

namespace tilewright {

namespace {

CUtensorMapDataType element_type(const TensorMapArgument &argument) {
    const DType type = argument.dtype;
    if (argument.rounds_to_tf32) {
        return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    }
    switch (type) {
        case DType::bfloat16:
            return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        case DType::float16:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        case DType::float32:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        case DType::float64:
            return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
        case DType::int32:
            return CU_TENSOR_MAP_DATA_TYPE_INT32;
        case DType::int64:
            return CU_TENSOR_MAP_DATA_TYPE_INT64;
        default:
            break;
    }
    switch (size_in_bytes(type)) {
        case 1:
            return CU_TENSOR_MAP_DATA_TYPE_UINT8;
        case 2:
            return CU_TENSOR_MAP_DATA_TYPE_UINT16;
        case 4:
            return CU_TENSOR_MAP_DATA_TYPE_UINT32;
        default:
            internal_error("the bulk tensor copy has no element type for {}", name(type));
    }
}

CUtensorMapSwizzle swizzle(int bytes) {
    switch (bytes) {
        case 0:
            return CU_TENSOR_MAP_SWIZZLE_NONE;
        case 32:
            return CU_TENSOR_MAP_SWIZZLE_32B;
        case 64:
            return CU_TENSOR_MAP_SWIZZLE_64B;
        case 128:
            return CU_TENSOR_MAP_SWIZZLE_128B;
        default:
            internal_error("a bulk tensor copy swizzles 0, 32, 64 or 128 bytes, not {}", bytes);
    }
}

CUtensorMapL2promotion promotion(int bytes) {
    switch (bytes) {
        case 64:
            return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
        case 128:
            return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
        case 256:
            return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
        default:
            return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    }
}

}  // namespace

CUtensorMap encode_tensor_map(const TensorMapArgument &argument, const SymbolValues &symbols, CUdeviceptr base) {
    const std::size_t rank = rank_of(argument);
    const auto windows = windows_of(argument);
    internal_assert(rank >= 1 && rank <= 5 && (windows || argument.box.size() == rank), "a tensor map of rank {} with {} box sizes", rank,
                    argument.box.size());
    cuuint64_t sizes[5] = {};
    cuuint64_t strides[4] = {};
    cuuint32_t box[5] = {};
    cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    std::copy_n(argument.box.begin(), windows ? 2 : rank, box);
    for (std::size_t d = 0; d < rank; d++) {
        sizes[d] = static_cast<cuuint64_t>(argument.sizes[d].evaluate(symbols));
        if (d > 0) {
            strides[d - 1] = static_cast<cuuint64_t>(argument.byte_strides[d - 1].evaluate(symbols));
        }
    }
    const auto offset = static_cast<cuuint64_t>(argument.element_offset.evaluate(symbols) * size_in_bytes(argument.dtype));
    CUtensorMap map;
    if (windows) {
        int lower[3] = {}, upper[3] = {};
        for (std::size_t d = 0; d + 2 < rank; d++) {
            lower[d] = static_cast<int>(windows->lower_corner[d].evaluate(symbols));
            upper[d] = static_cast<int>(windows->upper_corner[d].evaluate(symbols));
            steps[d + 1] = windows->steps[d];
        }
        cuda_check(CudaDriver::get().tensor_map_encode_im2col(&map, element_type(argument), static_cast<cuuint32_t>(rank),
                                                              reinterpret_cast<void *>(base + offset), sizes, strides, lower, upper, box[0],
                                                              box[1], steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(argument.swizzle_bytes),
                                                              promotion(argument.l2_promotion_bytes), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                   "describing a tensor's pixels to the bulk copy unit");
        return map;
    }
    cuda_check(CudaDriver::get().tensor_map_encode_tiled(&map, element_type(argument), static_cast<cuuint32_t>(rank),
                                                         reinterpret_cast<void *>(base + offset), sizes, strides, box, steps,
                                                         CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(argument.swizzle_bytes),
                                                         promotion(argument.l2_promotion_bytes), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               "describing a tensor to the bulk copy unit");
    return map;
}

}  // namespace tilewright
