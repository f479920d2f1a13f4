// Pointers and references of the emulation: every access is held against the memory it belongs to.
#pragma once

#include <source_location>
#include <type_traits>

#include "../types.h"
#include "runtime.h"

namespace tw {

namespace host {
inline const Runtime *runtime = nullptr;
}

/// A kernel's view of a tensor in global memory.
template<class T> struct global_pointer {
    using value_type = std::remove_const_t<T>;
    T *base = nullptr;
    T *begin = nullptr;
    T *end = nullptr;

    T &operator[](int64 index) const { return *check(index, 1); }
    T &operator*() const { return *check(0, 1); }
    global_pointer operator+(int64 elements) const { return {base + elements, begin, end}; }
    operator global_pointer<const T>() const { return {base, begin, end}; }
    template<class U> const U *read_range(int64 index, int count) const { return aligned(index, count); }
    template<class U> U *write_range(int64 index, int count) const { return aligned(index, count); }

    T *check(int64 index, int count) const {
        if (base + index < begin || base + index + count > end) {
            host::runtime->fail("access outside of its buffer in global memory", base - begin + index, end - begin);
        }
        return base + index;
    }
    T *aligned(int64 index, int count) const {
        constexpr uint64 most = 16;
        T *place = check(index, count);
        const uint64 bytes = sizeof(T) * count;
        if (reinterpret_cast<uint64>(place) % (bytes < most ? bytes : most) != 0) {
            host::runtime->fail("misaligned wide access to global memory", base - begin + index, end - begin);
        }
        return place;
    }
};

/// Stands for an element of shared memory, so that reads and writes can be told apart.
template<class T> struct shared_reference {
    T *place;
    operator T() const {
        host::runtime->touch_shared(place, sizeof(T), host::SharedAccess::read);
        return *place;
    }
    const shared_reference &operator=(const T &value) const {
        host::runtime->touch_shared(place, sizeof(T), host::SharedAccess::write);
        *place = value;
        return *this;
    }
    const shared_reference &operator=(const shared_reference &other) const { return *this = static_cast<T>(other); }
    const shared_reference &operator+=(const T &value) const { return *this = static_cast<T>(*this) + value; }
    const shared_reference &operator-=(const T &value) const { return *this = static_cast<T>(*this) - value; }
    const shared_reference &operator*=(const T &value) const { return *this = static_cast<T>(*this) * value; }
};

template<class T> struct shared_pointer {
    using value_type = T;
    T *base = nullptr;
    T *begin = nullptr;
    T *end = nullptr;

    shared_reference<T> operator[](int64 index) const { return {check(index, 1)}; }
    shared_pointer operator+(int64 elements) const { return {base + elements, begin, end}; }
    template<class U> const U *read_range(int64 index, int count) const { return touched(index, count, host::SharedAccess::read); }
    template<class U> U *write_range(int64 index, int count) const { return touched(index, count, host::SharedAccess::write); }

    T *check(int64 index, int count) const {
        if (base + index < begin || base + index + count > end) {
            host::runtime->fail("access outside of its array in shared memory", base - begin + index, end - begin);
        }
        return base + index;
    }
    T *touched(int64 index, int count, host::SharedAccess access) const {
        T *place = check(index, count);
        const uint64 bytes = sizeof(T) * count;
        if (reinterpret_cast<uint64>(place) % (bytes < 16 ? bytes : 16) != 0) {
            host::runtime->fail("misaligned wide access to shared memory", base - begin + index, end - begin);
        }
        host::runtime->touch_shared(place, static_cast<int>(bytes), access);
        return place;
    }
};

/// A static array; the emulator keeps one for each block that runs.
template<class T, int N> struct shared_array {
    using value_type = T;
    char identity = 0;
    shared_pointer<T> pointer() const {
        T *start = reinterpret_cast<T *>(host::runtime->static_shared(this, sizeof(T) * N));
        return {start, start, start + N};
    }
    shared_reference<T> operator[](int64 index) const { return pointer()[index]; }
    shared_pointer<T> operator+(int64 elements) const { return pointer() + elements; }
    operator shared_pointer<T>() const { return pointer(); }
    template<class U> const U *read_range(int64 index, int count) const { return pointer().template read_range<U>(index, count); }
    template<class U> U *write_range(int64 index, int count) const { return pointer().template write_range<U>(index, count); }
};

template<class T> T *address(const global_pointer<T> &pointer, int64 index) { return pointer.check(index, 1); }
template<class T> T *address(const shared_pointer<T> &pointer, int64 index) {
    T *place = pointer.check(index, 1);
    host::runtime->touch_shared(place, sizeof(T), host::SharedAccess::atomic);
    return place;
}
template<class T, int N> T *address(const shared_array<T, N> &array, int64 index) { return address(array.pointer(), index); }

template<class T> shared_pointer<T> dynamic_shared(int byte_offset, int elements) {
    int bytes = 0;
    unsigned char *start = host::runtime->dynamic_shared(&bytes);
    if (byte_offset < 0 || byte_offset % static_cast<int>(alignof(T)) != 0 ||
        byte_offset + static_cast<int64>(sizeof(T)) * elements > bytes) {
        host::runtime->fail("array outside of the launch's dynamic shared memory", byte_offset, bytes);
    }
    T *first = reinterpret_cast<T *>(start + byte_offset);
    return {first, first, first + elements};
}

}  // namespace tw
