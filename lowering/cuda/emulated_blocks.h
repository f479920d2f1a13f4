// The threads of blocks that run together, as fibers: a scheduler, barriers and shuffles.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lowering/cuda/emulate.h"
#include "lowering/cuda/emulated_memory.h"

namespace tilewright {

/// One or several blocks (a cluster, or a cooperative grid) from their start to their end.
class EmulatedBlocks {
public:
    /// `kernel` is the body of one thread; `ranks` are the grid places of the blocks.
    EmulatedBlocks(const EmulatedLaunch &launch, const tw::host::Exports &exports, std::function<void()> kernel,
                   std::vector<tw::host::Dimensions> ranks);

    void run();

    /// The functions that kernels call while run() is active in this thread.
    static const tw::host::Runtime &runtime();

private:
    enum class State { ready, block_barrier, warp_barrier, named_barrier, cluster_barrier, finished };
    struct Block;
    struct Thread {
        boost::context::fiber fiber, scheduler;
        Block *block = nullptr;
        tw::host::Dimensions index;
        int rank = 0;  ///< in its block
        int warp = 0;  ///< among all warps that run together
        State state = State::ready;
        tw::host::Place place{"", 0};
        int barrier = 0, barrier_threads = 0;
        unsigned words[2] = {0, 0};  ///< deposited for a shuffle; a lane is never two ahead
        int parity = 0;
    };
    struct Block {
        tw::host::Dimensions index;
        int rank = 0;
        std::unique_ptr<SharedMemory> shared;
        std::vector<Thread *> threads;
    };

    void start(Thread &thread);
    void resume(Thread &thread);
    void wait(State state, tw::host::Place place);
    void open_barriers(const std::vector<Thread *> &group, State state);
    void open_cluster_barrier();
    void report_deadlock();
    [[noreturn]] void fault(const Thread &thread, const std::string &what) const;
    std::vector<Thread *> warp_of(const Thread &thread) const;
    std::vector<Thread *> arrived(const std::vector<Thread *> &threads, State state, int barrier = 0) const;
    void meet(const std::vector<Thread *> &group);
    Block &owner_of(const void *address);

    const EmulatedLaunch &launch_;
    const tw::host::Exports &exports_;
    std::function<void()> kernel_;
    static inline boost::context::pooled_fixedsize_stack stacks_{256 * 1024};  ///< one launch at a time uses them
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<std::unique_ptr<Thread>> threads_;
    WarpClocks clocks_;
    Thread *current_ = nullptr;
    std::exception_ptr failure_;
    bool progressed_ = false;

    friend struct EmulatedRuntime;
};

}  // namespace tilewright
