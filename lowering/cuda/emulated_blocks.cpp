#include "lowering/cuda/emulated_blocks.h"

#include <algorithm>

namespace tilewright {

using tw::host::Dimensions;
using tw::host::Place;
using tw::host::SharedAccess;

namespace {

EmulatedBlocks *active = nullptr;

int warps_a_block(const EmulatedLaunch &launch) {
    return static_cast<int>((launch.block[0] * launch.block[1] * launch.block[2] + 31) / 32);
}

}  // namespace

EmulatedBlocks::EmulatedBlocks(const EmulatedLaunch &launch, const tw::host::Exports &exports, std::function<void()> kernel,
                               std::vector<Dimensions> ranks)
    : launch_(launch), exports_(exports), kernel_(std::move(kernel)), clocks_(warps_a_block(launch) * static_cast<int>(ranks.size())) {
    const auto [nx, ny, nz] = launch.block;
    for (std::size_t b = 0; b < ranks.size(); b++) {
        Block &block = *blocks_.emplace_back(std::make_unique<Block>());
        block.index = ranks[b];
        block.rank = static_cast<int>(b);
        block.shared = std::make_unique<SharedMemory>(launch.dynamic_shared_bytes);
        for (unsigned i = 0; i < nx * ny * nz; i++) {
            Thread &thread = *threads_.emplace_back(std::make_unique<Thread>());
            thread.block = &block;
            thread.rank = static_cast<int>(i);
            thread.index = {i % nx, i / nx % ny, i / (nx * ny)};
            thread.warp = block.rank * warps_a_block(launch) + static_cast<int>(i / 32);
            block.threads.push_back(&thread);
        }
    }
}

void EmulatedBlocks::start(Thread &thread) {
    thread.fiber = boost::context::fiber(std::allocator_arg, stacks_, [this, &thread](boost::context::fiber &&scheduler) {
        thread.scheduler = std::move(scheduler);
        try {
            kernel_();
        } catch (const std::exception &) {
            failure_ = std::current_exception();
        }
        thread.state = State::finished;
        open_cluster_barrier();
        return std::move(thread.scheduler);
    });
}

void EmulatedBlocks::resume(Thread &thread) {
    current_ = &thread;
    *exports_.thread = thread.index;
    *exports_.block = thread.block->index;
    progressed_ = true;
    thread.fiber = std::move(thread.fiber).resume();
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void EmulatedBlocks::run() {
    EmulatedBlocks *const outer = std::exchange(active, this);
    struct Restore {
        EmulatedBlocks *outer;
        ~Restore() { active = outer; }
    } restore{outer};
    for (auto &thread : threads_) {
        start(*thread);
    }
    long idle_rounds = 0;
    while (true) {
        bool all_finished = true;
        progressed_ = false;
        bool moved = false;
        for (auto &thread : threads_) {
            if (thread->state == State::ready) {
                resume(*thread);
                moved |= thread->state != State::ready;
            }
            all_finished &= thread->state == State::finished;
        }
        if (all_finished) {
            return;
        }
        if (!progressed_) {
            report_deadlock();
        }
        // Threads that stay ready are polling; when nobody else moves for long, they poll for what never comes.
        idle_rounds = moved ? 0 : idle_rounds + 1;
        if (idle_rounds > 100000) {
            fault(*threads_.front(), "waits in a loop for what never happens");
        }
    }
}

void EmulatedBlocks::wait(State state, Place place) {
    Thread &thread = *current_;
    thread.state = state;
    thread.place = place;
    if (state == State::warp_barrier) {
        open_barriers(warp_of(thread), state);
    } else if (state == State::block_barrier) {
        open_barriers(thread.block->threads, state);
    } else if (state == State::named_barrier) {
        const std::vector<Thread *> here = arrived(thread.block->threads, state, thread.barrier);
        if (static_cast<int>(here.size()) == thread.barrier_threads) {
            meet(here);
        }
    } else if (state == State::cluster_barrier) {
        open_cluster_barrier();
    }
    thread.scheduler = std::move(thread.scheduler).resume();
}

/// Threads that have left the kernel are not waited for (PTX ISA, "barrier.cluster").
void EmulatedBlocks::open_cluster_barrier() {
    std::vector<Thread *> present;
    for (auto &thread : threads_) {
        if (thread->state != State::finished) {
            present.push_back(thread.get());
        }
    }
    if (!present.empty()) {
        open_barriers(present, State::cluster_barrier);
    }
}

/// Lets the group go on when all of it waits at the same place.
void EmulatedBlocks::open_barriers(const std::vector<Thread *> &group, State state) {
    const bool complete = std::all_of(group.begin(), group.end(), [&](const Thread *t) { return t->state == state; });
    if (!complete) {
        return;
    }
    for (const Thread *thread : group) {
        if (thread->place.line != group.front()->place.line || std::string_view(thread->place.file) != group.front()->place.file) {
            fault(*thread, fmt::format("waits at the barrier of {}:{} while thread {} of its group waits at {}:{}", thread->place.file,
                                       thread->place.line, group.front()->rank, group.front()->place.file, group.front()->place.line));
        }
    }
    meet(group);
}

void EmulatedBlocks::meet(const std::vector<Thread *> &group) {
    const bool orders_memory = group.front()->barrier >= 0;
    std::vector<int> warps;
    for (Thread *thread : group) {
        thread->state = State::ready;
        if (warps.empty() || warps.back() != thread->warp) {
            warps.push_back(thread->warp);
        }
    }
    if (orders_memory) {
        clocks_.synchronise(warps);
    }
}

void EmulatedBlocks::report_deadlock() {
    for (auto &thread : threads_) {
        if (thread->state == State::finished) {
            continue;
        }
        for (const Thread *other : thread->block->threads) {
            if (thread->state == State::warp_barrier && other->warp != thread->warp) {
                continue;
            }
            if (other->state == State::finished) {
                fault(*thread, fmt::format("waits at {}:{} for thread {}, which has left the kernel", thread->place.file,
                                           thread->place.line, other->rank));
            }
            if (other->state != thread->state) {
                fault(*thread, fmt::format("waits at {}:{} while thread {} waits at {}:{}", thread->place.file, thread->place.line,
                                           other->rank, other->place.file, other->place.line));
            }
        }
        fault(*thread, fmt::format("waits at {}:{} for ever", thread->place.file, thread->place.line));
    }
}

void EmulatedBlocks::fault(const Thread &thread, const std::string &what) const {
    const Dimensions &b = thread.block->index;
    throw EmulationFault(fmt::format("kernel {}, block ({}, {}, {}), thread {}: {}", launch_.function, b.x, b.y, b.z, thread.rank, what));
}

std::vector<EmulatedBlocks::Thread *> EmulatedBlocks::warp_of(const Thread &thread) const {
    const auto &threads = thread.block->threads;
    const int first = thread.rank / 32 * 32;
    return {threads.begin() + first, threads.begin() + std::min<std::size_t>(first + 32, threads.size())};
}

std::vector<EmulatedBlocks::Thread *> EmulatedBlocks::arrived(const std::vector<Thread *> &threads, State state, int barrier) const {
    std::vector<Thread *> result;
    std::copy_if(threads.begin(), threads.end(), std::back_inserter(result),
                 [&](const Thread *t) { return t->state == state && t->barrier == barrier; });
    return result;
}

EmulatedBlocks::Block &EmulatedBlocks::owner_of(const void *address) {
    if (current_->block->shared->contains(address)) {
        return *current_->block;
    }
    for (auto &block : blocks_) {
        if (block->shared->contains(address)) {
            return *block;
        }
    }
    fault(*current_, "uses an address that is not in shared memory");
}

/// The functions behind the kernels' table. A barrier number of -1 marks a meeting that does not order memory (a shuffle).
struct EmulatedRuntime {
    using State = EmulatedBlocks::State;

    static void sync_block(Place place) {
        active->current_->barrier = 0;
        active->wait(State::block_barrier, place);
    }
    static void sync_named(int barrier, int threads, Place place) {
        active->current_->barrier = barrier;
        active->current_->barrier_threads = threads;
        active->wait(State::named_barrier, place);
    }
    static void sync_warp(Place place) {
        active->current_->barrier = 0;
        active->wait(State::warp_barrier, place);
    }
    static void sync_cluster(Place place) {
        active->current_->barrier = 0;
        active->wait(State::cluster_barrier, place);
    }
    static unsigned deposit(unsigned word, Place place) {
        EmulatedBlocks::Thread &self = *active->current_;
        const int slot = self.parity;
        self.words[slot] = word;
        self.parity ^= 1;
        self.barrier = -1;
        active->wait(State::warp_barrier, place);
        return static_cast<unsigned>(slot);
    }
    static unsigned exchange(unsigned word, int source, Place place) {
        EmulatedBlocks::Thread &self = *active->current_;
        const unsigned slot = deposit(word, place);
        const auto &threads = self.block->threads;
        const std::size_t from = self.rank / 32 * 32 + (source & 31);
        return from < threads.size() ? threads[from]->words[slot] : word;
    }
    static unsigned ballot(bool predicate, Place place) {
        EmulatedBlocks::Thread &self = *active->current_;
        const unsigned slot = deposit(predicate ? 1 : 0, place);
        unsigned mask = 0;
        for (const EmulatedBlocks::Thread *thread : active->warp_of(self)) {
            mask |= thread->words[slot] << (thread->rank % 32);
        }
        return mask;
    }
    [[noreturn]] static void fail(const char *what, long long index, long long size) {
        active->fault(*active->current_, fmt::format("{}: place {} of {}", what, index, size));
    }
    static unsigned char *static_shared(const void *object, int bytes) {
        return active->current_->block->shared->static_part(object, bytes);
    }
    static unsigned char *dynamic_shared(int *bytes) {
        SharedMemory &shared = *active->current_->block->shared;
        *bytes = shared.dynamic_bytes();
        return shared.dynamic_part();
    }
    static void touch_shared(const void *address, int bytes, SharedAccess access) {
        const EmulatedBlocks::Thread &self = *active->current_;
        EmulatedBlocks::Block &owner = active->owner_of(address);
        const int unique = self.block->rank * static_cast<int>(self.block->threads.size()) + self.rank;
        const std::string wrong = owner.shared->touch(address, bytes, access, unique, self.warp, active->clocks_);
        if (!wrong.empty()) {
            active->fault(self, fmt::format("{} (byte {} of its shared memory)", wrong,
                                            static_cast<const unsigned char *>(address) - owner.shared->dynamic_part()));
        }
    }
    static void yield() {
        EmulatedBlocks::Thread &self = *active->current_;
        self.scheduler = std::move(self.scheduler).resume();
    }
    static int cluster_rank() { return active->launch_.cooperative ? 0 : active->current_->block->rank; }
    static unsigned char *peer_shared(const void *address, int rank) {
        EmulatedBlocks::Block &own = active->owner_of(address);
        if (rank < 0 || rank >= static_cast<int>(active->blocks_.size())) {
            active->fault(*active->current_, fmt::format("reaches for block {} of a cluster of {}", rank, active->blocks_.size()));
        }
        SharedMemory &peer = *active->blocks_[rank]->shared;
        return peer.dynamic_part() + (static_cast<const unsigned char *>(address) - own.shared->dynamic_part());
    }
    static void release(const void *object) { active->clocks_.release(object, active->current_->warp); }
    static void acquire(const void *object) { active->clocks_.acquire(object, active->current_->warp); }
};

const tw::host::Runtime &EmulatedBlocks::runtime() {
    using R = EmulatedRuntime;
    static const tw::host::Runtime table = {R::sync_block,   R::sync_named,    R::sync_warp,      R::exchange,     R::ballot,
                                            R::fail,         R::static_shared, R::dynamic_shared, R::touch_shared, R::yield,
                                            R::cluster_rank, R::peer_shared,   R::sync_cluster,   R::release,      R::acquire};
    return table;
}

}  // namespace tilewright
