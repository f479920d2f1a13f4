#include "runtime/cuda/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "dsl/error.h"
#include "runtime/cuda/launch.h"
#include "runtime/strided_copy.h"

namespace tilewright {

namespace {

constexpr int most_dimensions = 15;

/// The kernel's parameter block, innermost dimension first; strides in bytes.
struct CopyLayout {
    std::int64_t sizes[16], to[16], from[16];
    std::int64_t rank = 0, bytes = 0;
};

// Byte i of the tensor, for i = thread, thread + threads, …: the place of i in each dimension gives both addresses.
const char *source = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry strided_copy(.param .u64 to, .param .u64 from, .param .align 8 .b8 layout[400])
{
    .reg .pred %p;
    .reg .b16 %value;
    .reg .b32 %a, %b;
    .reg .b64 %to, %from, %i, %step, %bytes, %rank, %rest, %d, %dim, %size, %place, %stride, %x, %y, %wide;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    ld.param.u64 %rank, [layout+384];
    ld.param.u64 %bytes, [layout+392];
    mov.u32 %a, %ntid.x;
    mov.u32 %b, %ctaid.x;
    mul.wide.u32 %i, %a, %b;
    mov.u32 %b, %tid.x;
    cvt.u64.u32 %wide, %b;
    add.u64 %i, %i, %wide;
    mov.u32 %b, %nctaid.x;
    mul.wide.u32 %step, %a, %b;
byte_loop:
    setp.ge.u64 %p, %i, %bytes;
    @%p bra done;
    mov.u64 %rest, %i;
    mov.u64 %x, %to;
    mov.u64 %y, %from;
    mov.u64 %d, 0;
    mov.b64 %dim, layout;
dimension_loop:
    setp.ge.u64 %p, %d, %rank;
    @%p bra copy;
    ld.param.u64 %size, [%dim];
    rem.u64 %place, %rest, %size;
    div.u64 %rest, %rest, %size;
    ld.param.u64 %stride, [%dim+128];
    mad.lo.s64 %x, %place, %stride, %x;
    ld.param.u64 %stride, [%dim+256];
    mad.lo.s64 %y, %place, %stride, %y;
    add.u64 %dim, %dim, 8;
    add.u64 %d, %d, 1;
    bra dimension_loop;
copy:
    ld.global.u8 %value, [%y];
    st.global.u8 [%x], %value;
    add.u64 %i, %i, %step;
    bra byte_loop;
done:
    ret;
}
)";

CUfunction copy_function() {
    static const CudaModule module = [] {
        CodeObject code;
        code.name = "strided_copy";
        code.image.resize(std::strlen(source) + 1);
        std::memcpy(code.image.data(), source, code.image.size());
        return CudaModule(code);
    }();
    static const CUfunction function = module.function("strided_copy", 0, false);
    return function;
}

bool is_dense(const std::vector<std::int64_t> &strides, const std::vector<std::int64_t> &sizes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, size
    for (std::size_t d = 0; d < sizes.size(); d++) {
        if (sizes[d] > 1) {
            dimensions.emplace_back(strides[d], sizes[d]);
        }
    }
    std::sort(dimensions.begin(), dimensions.end());
    std::int64_t expected = 1;
    for (const auto &[stride, size] : dimensions) {
        if (stride != expected) {
            return false;
        }
        expected *= size;
    }
    return true;
}

}  // namespace

void prepare_strided_copy() { copy_function(); }

void enqueue_strided_copy(CUdeviceptr to, const std::vector<std::int64_t> &to_strides, CUdeviceptr from,
                          const std::vector<std::int64_t> &from_strides, const std::vector<std::int64_t> &sizes, int element_bytes,
                          CUstream stream) {
    const CudaDriver &driver = CudaDriver::get();
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes) {
        elements *= size;
    }
    if (elements == 0 || (to == from && same_layout(to_strides, from_strides, sizes))) {
        return;
    }
    if (same_layout(to_strides, from_strides, sizes) && is_dense(to_strides, sizes)) {
        cuda_check(driver.copy_on_device(to, from, static_cast<std::size_t>(elements * element_bytes), stream), "copying a tensor");
        return;
    }
    internal_assert(sizes.size() <= most_dimensions, "a copy of a tensor of {} dimensions", sizes.size());
    CopyLayout layout = {};
    layout.sizes[0] = element_bytes;
    layout.to[0] = 1;
    layout.from[0] = 1;
    layout.rank = 1;
    layout.bytes = elements * element_bytes;
    for (std::size_t d = sizes.size(); d-- > 0; layout.rank++) {
        layout.sizes[layout.rank] = sizes[d];
        layout.to[layout.rank] = to_strides[d] * element_bytes;
        layout.from[layout.rank] = from_strides[d] * element_bytes;
    }
    void *parameters[] = {&to, &from, &layout};
    CUlaunchConfig config = {};
    config.gridDimX = static_cast<unsigned>(std::min<std::int64_t>((layout.bytes + 255) / 256, 4096));
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    cuda_check(driver.launch_kernel(&config, copy_function(), parameters, nullptr), "copying a tensor between layouts");
}

}  // namespace tilewright
