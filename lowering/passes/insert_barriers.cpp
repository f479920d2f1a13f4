#include <algorithm>
#include <set>

#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;

/// Shared buffers touched since the last barrier.
struct Touched {
    std::set<std::string> read, written;
    friend bool operator==(const Touched &, const Touched &) = default;
};

class BarrierInserter {
public:
    explicit BarrierInserter(const Launch &launch) : launch_(launch) {}

    void run(Block &block, Touched &state) {
        Block result;
        for (Statement &s : block) {
            if (s.as<Barrier>()) {
                state = {};
                result.push_back(std::move(s));
                continue;
            }
            if (auto *loop = s.as<For>(); loop && !loop->disjoint) {
                if (conflicts(touched_by(s), state)) {  // outside of the loop, once
                    result.push_back({Barrier{}});
                    state = {};
                }
                // The next iteration begins where this one ends.
                Touched entry = state;
                run(loop->body, state);
                entry.read.insert(state.read.begin(), state.read.end());
                entry.written.insert(state.written.begin(), state.written.end());
                Touched again = entry;
                run(loop->body, again);
                state = again;
                result.push_back(std::move(s));
                continue;
            }
            const Touched own = touched_by(s);
            if (conflicts(own, state)) {
                result.push_back({Barrier{}});
                state = {};
            }
            state.read.insert(own.read.begin(), own.read.end());
            state.written.insert(own.written.begin(), own.written.end());
            result.push_back(std::move(s));
        }
        block = std::move(result);
    }

private:
    static bool meets(const std::set<std::string> &a, const std::set<std::string> &b) {
        return std::any_of(a.begin(), a.end(), [&](const std::string &name) { return b.count(name) > 0; });
    }
    static bool conflicts(const Touched &own, const Touched &before) {
        return meets(own.read, before.written) || meets(own.written, before.read) || meets(own.written, before.written);
    }
    bool is_shared(const std::string &name) const {
        const Buffer *buffer = launch_.find_buffer(name);
        return buffer && buffer->memory == Memory::shared && !buffer->ordered;
    }
    /// A condition's body counts as one access: a barrier may not stand inside. Collective operations order their own exchange.
    Touched touched_by(const Statement &s) const {
        Touched result;
        const auto add = [&](const Statement &inner) {
            if (inner.as<Combine>() || inner.as<ScanThreads>()) {
                return;
            }
            for (const std::string &name : read_buffers(inner)) {
                if (is_shared(name)) {
                    result.read.insert(name);
                }
            }
            for (const std::string &name : written_buffers(inner)) {
                if (is_shared(name)) {
                    result.written.insert(name);
                }
            }
        };
        add(s);
        if (const Block *body = body_of(s)) {
            visit_statements(*body, add);
        }
        return result;
    }

    const Launch &launch_;
};

}  // namespace

void insert_barriers(Launch &launch) {
    Touched state;
    BarrierInserter(launch).run(launch.body, state);
}

}  // namespace tilewright
