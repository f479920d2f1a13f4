#include <algorithm>
#include <set>

#include "dsl/algorithm/expression.h"
#include "dsl/error.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright::tile {
namespace {

class Verifier {
public:
    explicit Verifier(const Launch &launch) : launch_(launch) {
        for (const std::string &symbol : launch.symbols) {
            defined_.insert(symbol);
        }
        defined_.insert("thread.rank");
        defined_.insert("block.rank");
        for (const Axis &axis : launch.axes) {
            for (const Leaf &leaf : axis.leaves) {
                if (leaf.level == Level::thread || leaf.level == Level::grid || leaf.level == Level::cluster) {
                    defined_.insert(leaf.name);
                }
                if (leaf.level == Level::thread) {
                    varying_.insert(leaf.name);
                }
            }
        }
        varying_.insert("thread.rank");
    }

    void run() {
        check(launch_.threads >= 1 && launch_.threads <= 1024, "threads a block out of range");
        std::set<std::string> names;
        for (const Buffer &buffer : launch_.buffers) {
            check(names.insert(buffer.name).second, "buffer '" + buffer.name + "' is defined twice");
            check(buffer.extents.size() == buffer.strides.size(), "buffer '" + buffer.name + "': extents and strides differ in number");
            const bool constant =
                std::all_of(buffer.extents.begin(), buffer.extents.end(), [](const Extent &e) { return e.is_constant(); });
            check(buffer.memory == Memory::global || constant, "buffer '" + buffer.name + "' is no array of constant size");
        }
        body(launch_.body, false);
    }

private:
    void check(bool condition, const std::string &what) const { internal_assert(condition, "tile launch {}: {}", launch_.name, what); }

    /// An axis is defined where all of its leaves are; one that a loop defines varies among threads if a thread leaf is part of it.
    bool is_defined(const std::string &name) const {
        if (defined_.count(name)) {
            return true;
        }
        const bool first = name.size() > 6 && name.substr(name.size() - 6) == ".first";
        const std::string base = first ? name.substr(0, name.size() - 6) : name;
        const auto axis = std::find_if(launch_.axes.begin(), launch_.axes.end(), [&](const Axis &a) { return a.name == base; });
        const bool has_vector = axis != launch_.axes.end() && std::any_of(axis->leaves.begin(), axis->leaves.end(),
                                                                          [](const Leaf &leaf) { return leaf.level == Level::vector; });
        return axis != launch_.axes.end() && std::all_of(axis->leaves.begin(), axis->leaves.end(), [&](const Leaf &leaf) {
                   return defined_.count(leaf.name) || leaf.extent == Extent(1) ||
                          (first && (has_vector ? leaf.level == Level::vector : &leaf == &axis->leaves.back()));
               });
    }
    bool varies(const Expr &e) const {
        for (const std::string &name : variables_of(e)) {
            if (varying_.count(name)) {
                return true;
            }
            for (const Axis &axis : launch_.axes) {
                const bool is_axis = axis.name == name || axis.name + ".first" == name;
                if (is_axis &&
                    std::any_of(axis.leaves.begin(), axis.leaves.end(), [](const Leaf &l) { return l.level == Level::thread; })) {
                    return true;
                }
            }
        }
        return contains_read(e);
    }

    void body(const Block &block, bool divergent) {
        const std::set<std::string> outer = defined_;
        for (const Statement &s : block) {
            statement(s, divergent);
        }
        defined_ = outer;
    }

    void statement(const Statement &s, bool divergent) {
        for (const Expr &e : expressions_of(s)) {
            for (const std::string &name : variables_of(e)) {
                check(is_defined(name), "variable '" + name + "' is used where it is not defined");
            }
            visit_reads(e, [&](const Halide::Internal::Call *call) { check_access(call->name, call->args.size()); });
        }
        for (const std::string &name : written_buffers(s)) {
            check(launch_.find_buffer(name), "buffer '" + name + "' is written and not defined");
        }
        if (const auto *f = s.as<For>()) {
            check(f->level == Level::loop || f->extent.is_constant(), "loop '" + f->variable + "' is unrolled and has no constant extent");
            const std::set<std::string> before = defined_;
            defined_.insert(f->variable);
            body(f->body, divergent);
            defined_ = before;
        } else if (const auto *i = s.as<If>()) {
            body(i->body, divergent || varies(i->condition));
        } else if (const auto *l = s.as<Let>()) {
            defined_.insert(l->name);
        } else if (s.as<Barrier>() || s.as<Combine>() || s.as<ScanThreads>()) {
            check(!divergent, "a barrier or collective operation stands under a condition that differs among threads");
        } else if (const auto *call = s.as<Invoke>()) {
            check(!divergent || !call->whole_block,
                  "'" + call->function + "' of all threads stands under a condition that differs among threads");
        } else if (const auto *store = s.as<Store>()) {
            check_access(store->buffer, store->indices.size());
        }
        if (const auto *fold = s.as<Fold>()) {
            check(launch_.find_combiner(fold->combiner), "combiner '" + fold->combiner + "' is not defined");
        }
    }

    void check_access(const std::string &name, std::size_t indices) const {
        const Buffer *buffer = launch_.find_buffer(name);
        check(buffer, "buffer '" + name + "' is used and not defined");
        check(buffer->extents.size() == indices, "buffer '" + name + "' is used with the wrong number of indices");
    }

    const Launch &launch_;
    std::set<std::string> defined_, varying_;
};

}  // namespace

void verify(const Program &program) {
    for (const Launch &launch : program.launches) {
        Verifier(launch).run();
    }
}

}  // namespace tilewright::tile
