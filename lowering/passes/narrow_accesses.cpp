#include "lowering/passes/narrow_accesses.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "lowering/passes/launch_ranges.h"
#include "lowering/passes/wide_access.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

constexpr std::int64_t widest = 16;              // bytes that a thread moves at once
constexpr std::int64_t worth_mentioning = 4096;  // elements
constexpr std::int64_t least_share = 16;         // a tensor that is so many times smaller than the largest does not matter

/// The widest access to a tensor so far.
struct Seen {
    bool writes = false;
    std::int64_t bytes = 0;
    std::string reason;
    std::int64_t elements = 0;  ///< of the tensor
};

class AccessWalk {
public:
    AccessWalk(const Launch &launch, const SymbolRanges &symbols, std::map<std::string, Seen> &seen)
        : launch_(launch), symbols_(symbols), access_(launch, symbols), seen_(seen) {}

    void run(const Block &block, const For *vector) {
        for (const Statement &s : block) {
            const auto *loop = s.as<For>();
            const For *inner = loop && loop->level == Level::vector ? loop : vector;
            for (const Expr &e : expressions_of(s)) {
                visit_reads(e, inner);
            }
            if (const auto *load = s.as<VectorLoad>()) {
                note_vector(load->buffer, load->lanes, false);
            } else if (const auto *wide = s.as<VectorStore>()) {
                note_vector(wide->buffer, wide->lanes, true);
            } else if (const auto *store = s.as<Store>()) {
                note_element(store->buffer, store->indices, inner, true);
            } else if (const auto *invoke = s.as<Invoke>()) {
                note_units(*invoke);
            }
            if (const Block *body = body_of(s)) {
                run(*body, inner);
            }
        }
    }

private:
    const Buffer *tensor(const std::string &name) const {
        const Buffer *buffer = launch_.find_buffer(name);
        const bool is_tensor = buffer && buffer->memory == Memory::global && buffer->types.size() == 1 &&
                               (buffer->binding == Buffer::Binding::input || buffer->binding == Buffer::Binding::output);
        return is_tensor && product(buffer->extents).bounds(symbols_).max >= worth_mentioning ? buffer : nullptr;
    }

    void note(const Buffer &buffer, std::int64_t bytes, bool writes, std::string reason) {
        Seen &seen = seen_[buffer.name];
        if (bytes > seen.bytes) {
            seen = {writes, bytes, std::move(reason), product(buffer.extents).bounds(symbols_).max};
        }
    }

    void note_vector(const std::string &name, int lanes, bool writes) {
        if (const Buffer *buffer = tensor(name)) {
            const std::string why = why_unaligned(*buffer, widest);
            note(*buffer, access_bytes(*buffer, lanes), writes,
                 why.empty() ? fmt::format("the schedule's vectors have {} elements", lanes) : why);
        }
    }

    /// The copy engine and the matrix unit move whole tiles.
    void note_units(const Invoke &invoke) {
        for (const Invoke::Argument &argument : invoke.arguments) {
            if (const Buffer *buffer = tensor(argument.buffer)) {
                note(*buffer, widest, false, "");
            }
        }
    }

    void note_element(const std::string &name, const std::vector<Expr> &indices, const For *vector, bool writes) {
        const Buffer *buffer = tensor(name);
        if (!buffer) {
            return;
        }
        std::string why = why_unaligned(*buffer, widest);
        if (why.empty() && vector && vector->extent.is_constant() && vector->extent.value() > 1) {
            why = access_.why_narrow(*buffer, indices, *vector, static_cast<int>(vector->extent.value()));
        }
        note(*buffer, buffer->types[0].bytes(), writes, why.empty() ? "a thread takes one element at a time" : why);
    }

    void visit_reads(const Expr &e, const For *vector) {
        class Reads : public hi::IRGraphVisitor {
        public:
            Reads(AccessWalk &walk, const For *vector) : walk_(walk), vector_(vector) {}
            using hi::IRGraphVisitor::visit;
            void visit(const hi::Call *op) override {
                if (op->call_type == hi::Call::Halide) {
                    walk_.note_element(op->name, op->args, vector_, false);
                }
                hi::IRGraphVisitor::visit(op);
            }

        private:
            AccessWalk &walk_;
            const For *vector_;
        } reads(*this, vector);
        e.accept(&reads);
    }

    const Launch &launch_;
    const SymbolRanges &symbols_;
    WideAccess access_;
    std::map<std::string, Seen> &seen_;
};

}  // namespace

std::vector<NarrowAccess> narrow_accesses(const tile::Program &program) {
    std::map<std::string, Seen> seen;
    for (const Launch &launch : program.launches) {
        AccessWalk(launch, program.symbols, seen).run(launch.body, nullptr);
    }
    std::int64_t largest = 0;
    for (const auto &[tensor, access] : seen) {
        largest = std::max(largest, access.elements);
    }
    std::vector<NarrowAccess> result;
    for (const auto &[tensor, access] : seen) {
        if (access.bytes < widest && access.elements * least_share >= largest) {
            result.push_back({tensor, access.writes, static_cast<int>(access.bytes), access.reason});
        }
    }
    return result;
}

}  // namespace tilewright
