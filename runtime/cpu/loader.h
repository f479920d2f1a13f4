// Loads object files that lowering/cpu compiled into this process, by LLVM's ORC linker. Compiles nothing and needs no libHalide.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tilewright {

/// A compiled kernel. One pointer an argument, in the order of the step's: to a halide_buffer_t, to the scalar, or to the pointer.
/// Returns 0, or Halide's error code. Several threads may call one function at once.
using CpuFunction = int (*)(void **arguments);

/// The code of one object file. The code stays mapped until the last copy is gone.
class CpuCode {
public:
    /// `name` is for messages. InternalError where the object cannot be linked.
    static CpuCode load(std::span<const std::byte> object, const std::string &name);
    /// InternalError where the object has no such function.
    CpuFunction function(const std::string &name) const;

private:
    struct Library;
    std::shared_ptr<Library> library_;
};

/// Address of a function of Halide's runtime, "halide_set_num_threads"; null where it has none of that name.
void *halide_runtime_function(const std::string &name);

/// Threads that parallel kernels run on, over all calls. The hardware's at first.
void set_cpu_threads(int count);

}  // namespace tilewright
