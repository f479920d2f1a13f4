// Programs for tests, from graph text.
#pragma once

#include <string>
#include <string_view>

#include "dsl/graph/program.h"

namespace tilewright::tests {

/// A program whose placeholders are all user inputs and whose outputs are all user outputs, from lines of a printed graph without
/// "graph {" and "}". Every symbol in it ranges from 2 to 4096 unless `symbols` says otherwise.
///
///     program_from("%x : float32[2, s0] = placeholder\n"
///                  "%y : float32[2, s0] = call_function aten.relu.default(self=%x)\n"
///                  "%output = output(values=[%y])");
Program program_from(std::string_view lines, const SymbolRanges &symbols = {});

/// Makes a placeholder a buffer, parameter or constant with a value.
void bind_weight(Program &program, const std::string &placeholder, InputKind kind, HostTensor value);

}  // namespace tilewright::tests
