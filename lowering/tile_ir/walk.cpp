#include "lowering/tile_ir/walk.h"

#include <algorithm>

#include "dsl/algorithm/expression.h"

namespace tilewright::tile {
namespace {

void add(std::vector<Expr> &to, const std::vector<Expr> &from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

const Block *body_of(const Statement &statement) {
    if (const auto *f = statement.as<For>()) {
        return &f->body;
    }
    const auto *i = statement.as<If>();
    return i ? &i->body : nullptr;
}
Block *body_of(Statement &statement) { return const_cast<Block *>(body_of(static_cast<const Statement &>(statement))); }

void visit_statements(const Block &block, const std::function<void(const Statement &)> &visit) {
    for (const Statement &s : block) {
        visit(s);
        if (const Block *body = body_of(s)) {
            visit_statements(*body, visit);
        }
    }
}

std::vector<Expr> expressions_of(const Statement &statement) {
    std::vector<Expr> result;
    if (const auto *s = statement.as<If>()) {
        result = {s->condition};
    } else if (const auto *s = statement.as<Let>()) {
        result = {s->value};
    } else if (const auto *s = statement.as<Store>()) {
        add(result, s->indices);
        add(result, s->values);
    } else if (const auto *s = statement.as<VectorLoad>()) {
        result = s->indices;
        add(result, s->place);
        for (const Expr &condition : {s->condition, s->inside}) {
            if (condition.defined()) {
                result.push_back(condition);
            }
        }
    } else if (const auto *s = statement.as<VectorStore>()) {
        result = s->indices;
    } else if (const auto *s = statement.as<Fold>()) {
        add(result, s->place);
        add(result, s->terms);
    } else if (const auto *s = statement.as<Combine>()) {
        result = s->place;
    } else if (const auto *s = statement.as<ScanThreads>()) {
        result = s->place;
    } else if (const auto *s = statement.as<Invoke>()) {
        for (const auto &a : s->arguments) {
            add(result, a.indices);
            if (a.scalar.defined()) {
                result.push_back(a.scalar);
            }
        }
    }
    return result;
}

std::vector<std::string> written_buffers(const Statement &statement) {
    if (const auto *s = statement.as<Store>()) {
        return {s->buffer};
    }
    if (const auto *s = statement.as<VectorLoad>()) {
        return {s->registers};
    }
    if (const auto *s = statement.as<VectorStore>()) {
        return {s->buffer};
    }
    if (const auto *s = statement.as<Fold>()) {
        return {s->accumulator};
    }
    if (const auto *s = statement.as<Combine>()) {
        return s->shared.empty() ? std::vector<std::string>{s->value} : std::vector<std::string>{s->value, s->shared};
    }
    if (const auto *s = statement.as<ScanThreads>()) {
        return s->shared.empty() ? std::vector<std::string>{s->exclusive, s->carry}
                                 : std::vector<std::string>{s->exclusive, s->carry, s->shared};
    }
    if (const auto *s = statement.as<Invoke>()) {
        return s->writes;
    }
    return {};
}

std::vector<std::string> read_buffers(const Statement &statement) {
    std::vector<std::string> result;
    for (const Expr &e : expressions_of(statement)) {
        visit_reads(e, [&](const Halide::Internal::Call *call) { result.push_back(call->name); });
    }
    if (const auto *s = statement.as<VectorLoad>()) {
        result.push_back(s->buffer);
    } else if (const auto *s = statement.as<VectorStore>()) {
        result.push_back(s->registers);
    } else if (const auto *s = statement.as<Fold>()) {
        result.push_back(s->accumulator);
    } else if (const auto *s = statement.as<Combine>()) {
        result.push_back(s->value);
    } else if (const auto *s = statement.as<ScanThreads>()) {
        result.push_back(s->total);
        result.push_back(s->carry);
    } else if (const auto *s = statement.as<Invoke>()) {
        result.insert(result.end(), s->reads.begin(), s->reads.end());
    }
    return result;
}

Statement wrapped(Statement inner, const std::vector<const Statement *> &around, const std::function<Expr(const Expr &)> &condition) {
    for (auto s = around.rbegin(); s != around.rend(); ++s) {
        Block body{std::move(inner)};
        if (const auto *loop = (*s)->as<For>()) {
            inner = Statement{For{loop->variable, loop->extent, loop->level, std::move(body)}};
        } else {
            const Expr &guard = (*s)->as<If>()->condition;
            inner = Statement{If{condition ? condition(guard) : guard, std::move(body)}};
        }
    }
    return inner;
}

bool uses_buffer(const Statement &statement, const std::string &buffer) {
    const auto names = [&](const std::vector<std::string> &list) { return std::find(list.begin(), list.end(), buffer) != list.end(); };
    if (names(written_buffers(statement)) || names(read_buffers(statement))) {
        return true;
    }
    const Block *body = body_of(statement);
    return body && std::any_of(body->begin(), body->end(), [&](const Statement &s) { return uses_buffer(s, buffer); });
}

}  // namespace tilewright::tile
