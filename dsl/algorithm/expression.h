// Walks over Halide expressions that share subexpressions: each node once, however often it is read.
#pragma once

#include <Halide.h>
#include <functional>
#include <string>
#include <vector>

namespace tilewright {

/// Replaces every let variable by its value. Values stay shared: the result is a graph with as many nodes as before.
Halide::Expr inline_lets(const Halide::Expr &expression);
std::vector<Halide::Expr> inline_lets(const std::vector<Halide::Expr> &expressions);

/// Calls `visit` once for each Call node that reads a Func or an input, outermost first. Call with lets inlined or not.
void visit_reads(const Halide::Expr &expression, const std::function<void(const Halide::Internal::Call *)> &visit);
bool contains_read(const Halide::Expr &expression);
/// Names of all Variables; those of lets included, unless they are inlined.
std::vector<std::string> variables_of(const Halide::Expr &expression);
bool mentions(const Halide::Expr &expression, const std::string &variable);

/// Whether a place is read from a tensor, or checked because its range is not known.
bool is_indirect(const Halide::Expr &index);

/// Whether this Call reads a Func or an input.
bool is_read(const Halide::Internal::Call *call);

/// Structural equality up to `wildcards`: Variables of `pattern` whose name is a key of `bindings` match anything, the same thing each
/// time.
bool match(const Halide::Expr &pattern, const Halide::Expr &expression, std::map<std::string, Halide::Expr> &bindings);

}  // namespace tilewright
