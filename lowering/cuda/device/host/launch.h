// Calls a kernel, compiled for the host, with the arguments of a launch.
#pragma once

#include <type_traits>
#include <utility>

#include "../tilewright_device.h"
#include "runtime.h"

namespace tw::host {

template<class T> struct argument_as {
    static T from(const Argument &argument) {
        if constexpr (std::is_arithmetic_v<T>) {
            return static_cast<T>(argument.scalar);
        } else if constexpr (std::is_pointer_v<T>) {
            return static_cast<T>(argument.address);
        } else {
            return *static_cast<const T *>(argument.address);
        }
    }
};
template<class T> struct argument_as<global_pointer<T>> {
    static global_pointer<T> from(const Argument &argument) {
        return {static_cast<T *>(argument.address), static_cast<T *>(argument.begin), static_cast<T *>(argument.end)};
    }
};

template<class... Parameters, std::size_t... I>
void invoke(void (*kernel)(Parameters...), const Argument *arguments, std::index_sequence<I...>) {
    kernel(argument_as<std::remove_cv_t<Parameters>>::from(arguments[I])...);
}
template<class... Parameters> void invoke(void (*kernel)(Parameters...), const Argument *arguments) {
    invoke(kernel, arguments, std::index_sequence_for<Parameters...>());
}

/// One letter a parameter: b(uffer), p(ointer), 4 or 8 bytes of scalar, o(bject).
template<class T> inline constexpr char kind_of_parameter = std::is_arithmetic_v<T> ? static_cast<char>('0' + sizeof(T)) : std::is_pointer_v<T> ? 'p' : 'o';
template<class T> inline constexpr char kind_of_parameter<global_pointer<T>> = 'b';
template<class... Parameters> const char *signature(void (*)(Parameters...)) {
    static const char kinds[] = {kind_of_parameter<std::remove_cv_t<Parameters>>..., '\0'};
    return kinds;
}

}  // namespace tw::host

extern "C" __attribute__((used)) inline void tilewright_exports(tw::host::Exports *exports) {
    *exports = {&tw::host::runtime, &threadIdx, &blockIdx, &blockDim, &gridDim};
}
