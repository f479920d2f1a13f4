// The multiply of multiply.h for elements of other widths than 16 bits: rows of both operands run along K in shared memory, an instruction
// takes 32 bytes of each. The types are in multiply_tf32.h, multiply_float8.h and multiply_int8.h. Written by make_multiply.py.
#pragma once

#include "types.h"

namespace tw {

/// A and B: int8 and uint8 with int32 sums, float8 types, or float, of which the unit takes the bits of tf32.
template<class A, class B, int N> struct warpgroup_multiply_rows;

}  // namespace tw
