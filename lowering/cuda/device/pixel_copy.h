// Copies of pixels by the bulk tensor copy unit: what a convolution multiplies at one tap (PTX ISA, "cp.async.bulk.tensor", im2col mode).
// A copy takes a block of channels of consecutive places of the output, row after row and image after image; what lies outside of the
// tensor is zero.
#pragma once

#include "async_copy.h"

namespace tw {

#if defined(__CUDACC__)

template<int Space> struct pixel_copy;
template<> struct pixel_copy<1> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int channel, int image, int x, int tap_x, int, int,
                                                int, int) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(channel), "r"(x), "r"(image),
                     "h"(static_cast<short>(tap_x)) : "memory");
    }
};
template<> struct pixel_copy<2> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int channel, int image, int x, int tap_x, int y,
                                                int tap_y, int, int) {
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(channel), "r"(x), "r"(y), "r"(image),
                     "h"(static_cast<short>(tap_x)), "h"(static_cast<short>(tap_y)) : "memory");
    }
};
template<> struct pixel_copy<3> {
    static __device__ __forceinline__ void load(const void *to, const tensor_map &map, uint64 *barrier, int channel, int image, int x, int tap_x, int y,
                                                int tap_y, int z, int tap_z) {
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(
                         shared_address(to)), "l"(&map), "r"(shared_address(barrier)), "r"(channel), "r"(x), "r"(y), "r"(z), "r"(image),
                     "h"(static_cast<short>(tap_x)), "h"(static_cast<short>(tap_y)), "h"(static_cast<short>(tap_z)) : "memory");
    }
};

#else

template<int Space> struct pixel_copy {
    static void load(unsigned char *to, const tensor_map &map, uint64 *barrier, int channel, int image, int x, int tap_x, int y, int tap_y, int z, int tap_z) {
        const int taps[3] = {tap_x, tap_y, tap_z};
        long long at[4] = {x, y, z, image};
        at[Space] = image;
        for (unsigned pixel = 0; pixel < map.box[1]; ++pixel) {
            bool inside = at[Space] >= 0 && at[Space] < map.sizes[Space + 1];
            long long offset = at[Space] * map.byte_strides[Space + 1];
            for (int d = 0; d < Space; ++d) {
                const long long place = at[d] + taps[d];
                inside = inside && place >= 0 && place < map.sizes[d + 1];
                offset += place * map.byte_strides[d + 1];
            }
            for (unsigned c = 0; c < map.box[0]; ++c) {
                copy_element(to, map, pixel * map.box[0] + c, inside && channel + c < map.sizes[0], offset + (channel + c) * map.element_bytes);
            }
            next(map, at);
        }
        host::runtime->release(barrier);
        host_barrier::change(barrier, 0, -static_cast<int>(map.box[0] * map.box[1] * map.element_bytes));
    }

private:
    static void copy_element(unsigned char *to, const tensor_map &map, long long index, bool inside, long long offset) {
        long long place = index * map.element_bytes;
        if (map.swizzle_bytes == 128) {
            place ^= place >> 7 << 4 & 0x70;
        }
        host::runtime->touch_shared(to + place, map.element_bytes, host::SharedAccess::write);
        if (!inside) {
            std::memset(to + place, 0, map.element_bytes);
            return;
        }
        if (map.base + offset < map.begin || map.base + offset + map.element_bytes > map.end) {
            host::runtime->fail("bulk copy outside of its buffer in global memory", offset, map.end - map.begin);
        }
        copy_in(to + place, map.base + offset, map);
    }
    /// The output's next place.
    static void next(const tensor_map &map, long long (&at)[4]) {
        for (int d = 0; d < Space; ++d) {
            at[d] += map.steps[d];
            if (at[d] <= map.last[d]) {
                return;
            }
            at[d] = map.first[d];
        }
        at[Space] += 1;
    }
};

#endif

/// The producer: pixels of the tensor from the place (x, y, z) of an image on, seen from one tap, go to `to`, part of the iteration's slot.
template<int Stages, int Space, class T>
__device__ __forceinline__ void bulk_load_pixels(shared<T> to, const tensor_map &map, shared<uint64> barriers, int iteration, int channel, int image, int x,
                                                 int tap_x, int y = 0, int tap_y = 0, int z = 0, int tap_z = 0) {
    pixel_copy<Space>::load(bytes_of(to), map, barrier_at(barriers, iteration % Stages), channel, image, x, tap_x, y, tap_y, z, tap_z);
}

}  // namespace tw
