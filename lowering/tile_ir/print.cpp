#include <fmt/format.h>
#include <sstream>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright::tile {
namespace {

std::string text(const Expr &e) {
    std::ostringstream out;
    out << e;
    return out.str();
}

std::string text(const std::vector<Expr> &list) {
    std::string out;
    for (const Expr &e : list) {
        out += (out.empty() ? "" : ", ") + text(e);
    }
    return out;
}

struct Printer {
    std::string out;
    int depth = 1;

    void line(const std::string &s) { out += std::string(4 * depth, ' ') + s + "\n"; }
    void body(const Block &block) {
        ++depth;
        for (const Statement &s : block) {
            std::visit([&](const auto &node) { (*this)(node); }, s.node);
        }
        --depth;
    }
    void operator()(const For &f) {
        line(fmt::format("{} {} < {}:", name(f.level), f.variable, f.extent.to_string()));
        body(f.body);
    }
    void operator()(const If &f) {
        line("if " + text(f.condition) + ":");
        body(f.body);
    }
    void operator()(const Let &l) { line(l.name + " = " + text(l.value)); }
    void operator()(const Store &s) {
        line(fmt::format("{}[{}] {} {}", s.buffer, text(s.indices), s.atomic ? fmt::format("= atomic {} with", name(*s.atomic)) : "=",
                         text(s.values)));
    }
    void operator()(const VectorLoad &l) {
        line(fmt::format("{} = load {} of {}[{}]{}{}", l.registers, l.lanes, l.buffer, text(l.indices), l.aligned ? "" : " anywhere",
                         l.inside.defined() ? ", what is inside" : ""));
    }
    void operator()(const VectorStore &l) {
        line(fmt::format("{} {} of {} to {}[{}]", l.atomic ? fmt::format("atomic {}", name(*l.atomic)) : "store", l.lanes, l.registers,
                         l.buffer, text(l.indices)));
    }
    void operator()(const Fold &f) {
        line(fmt::format("{}[{}] = {}(itself, {})", f.accumulator, text(f.place), f.combiner, text(f.terms)));
    }
    void operator()(const Combine &c) {
        std::string groups;
        for (const auto &g : c.groups) {
            groups += fmt::format(" (thread / {}) % {}", g.stride, g.size);
        }
        line(fmt::format("{}[{}] = {} over threads{}{}{}", c.value, text(c.place), c.combiner, groups,
                         c.cluster_size > 1 ? fmt::format(" and {} blocks", c.cluster_size) : "",
                         c.shared.empty() ? "" : " through " + c.shared));
    }
    void operator()(const ScanThreads &s) {
        line(fmt::format("{}[{}], {} = {} of {} before, over threads (thread / {}) % {} through {}", s.exclusive, text(s.place), s.carry,
                         s.combiner, s.total, s.group.stride, s.group.size, s.shared));
    }
    void operator()(const Barrier &b) {
        line(b.scope == Barrier::Scope::warp ? "barrier warp" : b.scope == Barrier::Scope::block ? "barrier block" : "barrier cluster");
    }
    void operator()(const Comment &c) { line("# " + c.text); }
    void operator()(const Exit &) { line("exit"); }
    void operator()(const Invoke &i) {
        std::string arguments;
        for (const auto &a : i.arguments) {
            arguments +=
                (arguments.empty() ? "" : ", ") + (a.buffer.empty() ? text(a.scalar) : "&" + a.buffer + "[" + text(a.indices) + "]");
        }
        line(i.function + "(" + arguments + ")");
    }
};

}  // namespace

std::string print(const Launch &launch) {
    Printer p;
    p.out = fmt::format("launch {}  blocks {}  threads {}{}  shared {} B\n", launch.name, launch.blocks.to_string(), launch.threads,
                        launch.cluster > 1 ? fmt::format("  cluster {}", launch.cluster) : "", launch.shared_bytes);
    for (const Axis &axis : launch.axes) {
        std::string leaves;
        for (const Leaf &leaf : axis.leaves) {
            leaves += fmt::format("  {} {}={} *{}", name(leaf.level), leaf.name, leaf.extent.to_string(), leaf.stride.to_string());
        }
        p.line(fmt::format("axis {} = {}{}", axis.name, axis.extent.to_string(), leaves));
    }
    for (const Buffer &b : launch.buffers) {
        std::ostringstream types;
        for (const auto &t : b.types) {
            types << (&t == b.types.data() ? "" : ",") << t;
        }
        const char *memory = b.memory == Memory::global ? "global" : b.memory == Memory::shared ? "shared" : "registers";
        p.line(fmt::format("{} {} {}{} strides {}", memory, b.name, types.str(), to_string(b.extents), to_string(b.strides)));
    }
    --p.depth;
    p.body(launch.body);
    return p.out;
}

std::string print(const Program &program) {
    std::string out = "tiles " + program.kernel + "\n";
    for (const Launch &launch : program.launches) {
        out += print(launch);
    }
    return out;
}

}  // namespace tilewright::tile
