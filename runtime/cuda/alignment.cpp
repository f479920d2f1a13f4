#include "runtime/cuda/alignment.h"

#include "runtime/cuda/strided_copy.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

constexpr CUdeviceptr widest_access = 16;  // bytes, of one instruction

}  // namespace

void AlignedCopies::enter(const Plan &plan, const CudaBinding &binding, std::vector<CUdeviceptr> &addresses, CUstream stream) {
    for (auto &[buffer, copy] : copies_) {
        copy.original = 0;
    }
    for (int b = 0; b < static_cast<int>(addresses.size()); ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        // Kernels count from element 0, wherever it lay in its storage when the model was captured.
        if (addresses[b] % widest_access == 0) {
            continue;
        }
        Copy &copy = copies_[b];
        const std::int64_t bytes = span_bytes(buffer.meta.dtype, binding.sizes(b), binding.strides(b));
        if (copy.memory.bytes() < bytes) {
            copy.memory = DeviceMemory(bytes);
            prepare_strided_copy();
        }
        copy.place = copy.memory.address();
        copy.original = addresses[b];
        copy.is_written = buffer.kind == PlanBuffer::Kind::output;
        for (const PlanBuffer &other : plan.buffers) {
            copy.is_written = copy.is_written || other.write_back_to == b;
        }
        enqueue_strided_copy(copy.place, binding.strides(b), copy.original, binding.strides(b), binding.sizes(b),
                             size_in_bytes(buffer.meta.dtype), stream);
        addresses[b] = copy.place;
    }
}

void AlignedCopies::leave(const Plan &plan, const CudaBinding &binding, CUstream stream) {
    for (const auto &[b, copy] : copies_) {
        if (copy.original != 0 && copy.is_written) {
            enqueue_strided_copy(copy.original, binding.strides(b), copy.place, binding.strides(b), binding.sizes(b),
                                 size_in_bytes(plan.buffers[b].meta.dtype), stream);
        }
    }
}

}  // namespace tilewright
