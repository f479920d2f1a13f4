// Finds the values of a plan's symbols from the sizes of its inputs, and refuses inputs that do not fit the program.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/executor.h"
#include "runtime/plan.h"

namespace tilewright {

/// The value of every symbol. UserError names the input and the dimension for a wrong count, dtype, rank, size or a symbol outside its
/// range or with two values. Strides of the inputs are not looked at.
SymbolValues bind_symbols(const Plan &plan, std::span<const Tensor> inputs);

/// What the program calls a user input, for messages: `input 0 "input_ids"`.
std::string input_label(const Plan &plan, int user_input);

/// Stands for the site of an index where an integer was divided by zero.
constexpr std::int32_t zero_divisor_site = -2;
/// Message for a raised error flag.
std::string index_error_message(const Plan &plan, int site, std::int64_t index, std::int64_t size);

}  // namespace tilewright
