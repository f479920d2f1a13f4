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

}  // namespace tw::host

extern "C" __attribute__((used)) inline void tilewright_exports(tw::host::Exports *exports) {
    *exports = {&tw::host::runtime, &threadIdx, &blockIdx, &blockDim, &gridDim};
}
