// Walks over statements: what they contain, write and use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lowering/tile_ir/tile_ir.h"

namespace tilewright::tile {

/// Calls `visit` for each statement, outer ones first.
void visit_statements(const Block &block, const std::function<void(const Statement &)> &visit);
/// Expressions of this statement alone, not of its body.
std::vector<Expr> expressions_of(const Statement &statement);
/// Buffers that this statement alone writes.
std::vector<std::string> written_buffers(const Statement &statement);
/// Buffers that this statement alone reads, in expressions or whole.
std::vector<std::string> read_buffers(const Statement &statement);
/// Whether the statement or its body reads or writes the buffer.
bool uses_buffer(const Statement &statement, const std::string &buffer);
/// The body of a For or If; nullptr for others.
const Block *body_of(const Statement &statement);
Block *body_of(Statement &statement);
/// The statement in loops and guards like those around it, outermost first; `condition` may rewrite what a guard asks.
Statement wrapped(Statement inner, const std::vector<const Statement *> &around, const std::function<Expr(const Expr &)> &condition = {});

}  // namespace tilewright::tile
