#include "lowering/cuda/body_emitter.h"

#include <algorithm>
#include <utility>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

std::string cuda_name(const std::string &name) {
    std::string result = name;
    for (char &c : result) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    return result;
}

std::set<std::string> buffers_written(const tile::Block &statements) {
    std::set<std::string> result;
    tile::visit_statements(statements, [&](const tile::Statement &s) {
        const std::vector<std::string> written = tile::written_buffers(s);
        result.insert(written.begin(), written.end());
    });
    return result;
}

BodyEmitter::BodyEmitter(const tile::Launch &launch, const SymbolRanges &symbols) : launch_(launch) {
    for (const auto &[name, range] : symbols) {
        ranges_[name] = range;
    }
    for (const tile::Axis &axis : launch.axes) {
        axes_[axis.name] = &axis;
        ranges_[axis.name] = {0, std::max<std::int64_t>(axis.extent.bounds(symbols).max - 1, 0)};
        ranges_[axis.name + ".first"] = ranges_[axis.name];
        names_.insert(cuda_name(axis.name));
        names_.insert(cuda_name(axis.name + ".first"));
        for (const tile::Leaf &leaf : axis.leaves) {
            leaves_[leaf.name] = &leaf;
            ranges_[leaf.name] = {0, std::max<std::int64_t>(leaf.extent.bounds(symbols).max - 1, 0)};
            names_.insert(cuda_name(leaf.name));
        }
    }
    ranges_["thread.rank"] = {0, launch.threads - 1};
    names_.insert("thread_rank");
    names_.insert("block_rank");
    for (const tile::Buffer &buffer : launch.buffers) {
        names_.insert(cuda_name(buffer.name));
    }
    for (const std::string &symbol : launch.symbols) {
        names_.insert(symbol);
    }
    mutable_ = buffers_written(launch.body);
    find_held();
    tile::visit_statements(launch.body, [this](const tile::Statement &s) {
        if (const auto *invoke = s.as<tile::Invoke>()) {
            for (const tile::Invoke::Argument &argument : invoke->arguments) {
                arrays_.insert(argument.buffer);
            }
            arrays_.insert(invoke->reads.begin(), invoke->reads.end());
            arrays_.insert(invoke->writes.begin(), invoke->writes.end());
        }
    });
}

std::string BodyEmitter::run() {
    scopes_.emplace_back();
    std::set<std::string> registers;
    for (const tile::Buffer &buffer : launch_.buffers) {
        if (buffer.memory == tile::Memory::registers) {
            registers.insert(buffer.name);
        } else if (buffer.memory == tile::Memory::shared) {
            declare(buffer);
        }
    }
    plan_declarations(launch_.body, registers);
    count_uses(launch_.body);
    block(launch_.body);
    std::string out;
    for (const std::string &l : scopes_.back().lines) {
        out += "    " + l + "\n";
    }
    return out;
}

// ---- Scopes ----------------------------------------------------------------------------------------------------------------------

void BodyEmitter::open(bool conditional) {
    scopes_.emplace_back();
    scopes_.back().conditional = conditional;
}

std::vector<std::string> BodyEmitter::close() {
    std::vector<std::string> lines = std::move(scopes_.back().lines);
    scopes_.pop_back();
    seen_.clear();
    return lines;
}

void BodyEmitter::append_body(const std::string &head, std::vector<std::string> lines) {
    line(head + " {");
    for (const std::string &l : lines) {
        line("    " + l);
    }
    line("}");
}

std::string BodyEmitter::fresh(const std::string &hint) {
    std::string name = hint;
    while (name.empty() || !names_.insert(name).second) {
        name = (hint.empty() ? "v" : hint + "_") + std::to_string(counter_++);
    }
    return name;
}

std::string BodyEmitter::type_of(const tile::Buffer &buffer) const {
    return buffer.types.size() > 1 ? buffer.combiner + "_value" : cuda_type(buffer.types[0]);
}

void BodyEmitter::written(const std::string &buffer) {
    for (Scope &scope : scopes_) {
        for (auto it = scope.temporaries.begin(); it != scope.temporaries.end();) {
            it = it->second.reads.count(buffer) ? scope.temporaries.erase(it) : std::next(it);
        }
    }
    for (auto it = seen_.begin(); it != seen_.end();) {
        it = it->second.reads.count(buffer) ? seen_.erase(it) : std::next(it);
    }
}

/// A name gets another meaning: what was computed from the old one may not be taken for the new.
void BodyEmitter::forget_values() {
    seen_.clear();
    for (Scope &scope : scopes_) {
        scope.temporaries.clear();
    }
}

void BodyEmitter::forget_written_in(const tile::Block &statements) {
    for (const std::string &buffer : buffers_written(statements)) {
        written(buffer);
    }
}

void BodyEmitter::plan_declarations(const tile::Block &statements, const std::set<std::string> &buffers) {
    for (const std::string &buffer : buffers) {
        const tile::Statement *first = nullptr;
        int users = 0;
        for (const tile::Statement &s : statements) {
            if (tile::uses_buffer(s, buffer)) {
                first = first ? first : &s;
                ++users;
            }
        }
        if (!first) {
            continue;
        }
        const tile::Block *inside = users > 1 ? nullptr : tile::body_of(*first);
        if (inside) {
            plan_declarations(*inside, {buffer});
        } else {
            declarations_[first].push_back(buffer);
        }
    }
}

void BodyEmitter::declare(const tile::Buffer &buffer) {
    const std::string type = type_of(buffer), name = cuda_name(buffer.name);
    if (buffer.memory == tile::Memory::shared) {
        std::int64_t elements = 1;
        for (std::size_t i = 0; i < buffer.extents.size(); ++i) {
            elements += (buffer.extents[i].value() - 1) * buffer.strides[i].value();
        }
        if (launch_.shared_bytes > 0) {
            line(fmt::format("tw::shared<{}> {} = tw::dynamic_shared<{}>({}, {});  // {}", type, name, type, buffer.byte_offset, elements,
                             to_string(buffer.extents)));
        } else {
            line(fmt::format("__shared__ tw::shared_array<{}, {}> {};  // {}", type, elements, name, to_string(buffer.extents)));
        }
        return;
    }
    if (is_loaded_ahead(buffer)) {
        declare_words(buffer);
        return;
    }
    if (buffer.name.size() > 4 && buffer.name.substr(buffer.name.size() - 4) == ".vec") {
        const std::string count = buffer.extents.size() > 1 ? "[" + buffer.extents[0].to_string() + "]" : "";
        line(fmt::format("tw::vec<{}, {}> {}{};", type, buffer.extents.back().to_string(), name, count));
        return;
    }
    std::string dimensions;
    const bool packed = is_packed(buffer);
    for (std::size_t i = 0; i + packed < buffer.extents.size(); ++i) {
        dimensions += "[" + buffer.extents[i].to_string() + "]";
    }
    line(packed ? fmt::format("tw::vec<{}, {}> {}{};", type, buffer.extents.back().to_string(), name, dimensions)
                : fmt::format("{} {}{};", type, name, dimensions));
}

void BodyEmitter::count_uses(const tile::Block &statements) {
    tile::visit_statements(statements, [&](const tile::Statement &s) {
        for (const Expr &root : tile::expressions_of(s)) {
            std::vector<Expr> pending{root};
            ++uses_[root.get()];
            while (!pending.empty()) {
                const Expr e = pending.back();
                pending.pop_back();
                for (const Expr &operand : operands_of(e)) {
                    if (++uses_[operand.get()] == 1) {
                        pending.push_back(operand);
                    }
                }
            }
        }
    });
}

// ---- Statements ------------------------------------------------------------------------------------------------------------------

void BodyEmitter::block(const tile::Block &statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
        const tile::Statement &s = statements[i];
        std::vector<const tile::Combine *> together;
        for (std::size_t k = i; k < statements.size() && crosses_warps(statements[k]); ++k) {
            together.push_back(statements[k].as<tile::Combine>());
        }
        if (!together.empty()) {
            combine_together(together);
            i += together.size() - 1;
            continue;
        }
        if (auto found = declarations_.find(&s); found != declarations_.end()) {
            for (const std::string &buffer : found->second) {
                const auto *load = s.as<tile::VectorLoad>();
                const auto *store = s.as<tile::Store>();
                const bool scalar_start = store && store->buffer == buffer && store->indices.empty() && store->values.size() == 1;
                if (!(load && load->registers == buffer && load->place.empty()) && !scalar_start) {
                    declare(*launch_.find_buffer(buffer));
                }
            }
        }
        statement(s);
    }
}

void BodyEmitter::statement(const tile::Statement &s) {
    const auto *store = s.as<tile::Store>();
    auto found = declarations_.find(&s);
    if (store && found != declarations_.end() && store->indices.empty() && store->values.size() == 1 &&
        std::find(found->second.begin(), found->second.end(), store->buffer) != found->second.end()) {
        const std::string start = without_parentheses(text_of(store->values[0]));
        line(fmt::format("{} {} = {};", type_of(*launch_.find_buffer(store->buffer)), cuda_name(store->buffer), start));
        written(store->buffer);
        return;
    }
    std::visit([this](const auto &node) { emit(node); }, s.node);
}

}  // namespace tilewright
