// The GPU behind the emulated driver: memory, streams that run at once or record, modules of kernels compiled for the host.
#pragma once

#include <cuda.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lowering/cuda/emulate.h"

namespace emulated {

/// Device and page-locked memory, known by its address so that kernels' accesses can be held against it.
class Memory {
public:
    void *allocate(std::size_t bytes);
    bool release(void *address);  ///< false where it was never allocated
    /// The allocation that an address lies in; an empty buffer for any other address.
    tilewright::EmulatedBuffer around(void *address) const;

private:
    mutable std::mutex mutex_;
    std::map<std::byte *, std::size_t> blocks_;
};
Memory &memory();

struct Graph {
    std::vector<std::function<void()>> nodes;
    std::vector<std::shared_ptr<void>> retained;
};
struct Stream {
    std::unique_ptr<Graph> recording;
    cuuint64_t capture = 0;
};
/// Does it now, or records it where the stream is being captured.
void submit(CUstream stream, std::function<void()> work);
Stream &stream_of(CUstream handle);

/// A loaded image: kernels as source, or the runtime's own PTX, whose functions are known by name.
class Module {
public:
    explicit Module(const char *image);
    bool has(const std::string &function) const;
    /// Takes the parameters' values now; the result runs the kernel.
    std::function<void()> prepare(const std::string &function, const CUlaunchConfig &config, void **parameters) const;

private:
    std::function<void()> prepare_own(const std::string &function, void **parameters) const;
    std::shared_ptr<tilewright::EmulatedModule> kernels_;
    std::vector<std::string> functions_;
};
struct Function {
    const Module *module;
    std::string name;
};

}  // namespace emulated
