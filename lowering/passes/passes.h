// The passes over launches, one function each; lower_to_tiles.cpp knows their order.
#pragma once

#include "lowering/tile_ir/gpu_facts.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

/// Conditions move out of loops that they do not depend on; neighbours under one condition share it.
void hoist_guards(tile::Launch &launch);
/// Unrolled steps that may pass an axis' end: where the last of them lies inside, all go without asking, so that their loads are under way
/// together.
void whole_rounds(tile::Launch &launch);
/// Lines of a thread whose windows overlap: a loop over taps becomes one over the rows that they read. A row is loaded once and folded into
/// each line of which it is part, in the order of that line's taps.
void slide_windows(tile::Launch &launch, const SymbolRanges &symbols);
/// Clamps of reads that the choice around them makes idle go, so that the reads are made under the condition, by wide accesses where it
/// allows them. Conditions that hold at some steps of unrolled loops, as those at a border in the middle of a window, say so: there the
/// code has none.
void settle_conditions(tile::Launch &launch, const SymbolRanges &symbols);
/// What a vector leaf reads at neighbouring places, as stencils do, or where no wide access may begin, is loaded before it in runs of the
/// widest accesses that its alignment allows.
void load_windows(tile::Launch &launch, const SymbolRanges &symbols);
/// Vectors along an axis that is shifted, or no whole number of them long: those that lie inside of it go as a whole, the ones at its ends
/// element by element.
void split_edges(tile::Launch &launch);
/// Neighbouring elements along a vector leaf become one access where their addresses are neighbours and aligned.
void widen_accesses(tile::Launch &launch, const SymbolRanges &symbols);
/// An unrolled loop around a vector loop: what lies along the unrolled axis is loaded by vectors along it, one for each lane.
void load_squares(tile::Launch &launch, const SymbolRanges &symbols);
/// What several unrolled loops load again and again is loaded once, before the first of them, and kept in registers as it lies in memory.
void hold_loads(tile::Launch &launch);
/// Likewise elements that are read one by one, before and after an exchange.
void hold_elements(tile::Launch &launch);
/// What follows a product on the matrix unit is stored strip by strip: what a strip reads, a residual or a bias, is loaded while the one
/// before is computed, and that of the first while the unit multiplies, as far as registers hold it.
void load_next_strip(tile::Launch &launch);
/// Exponentials of what lies below a maximum that the same pass has found, as in a softmax, and quotients by their sum take functions that
/// need not care for large arguments and small divisors.
void bound_exponentials(tile::Launch &launch);
/// Takes exponentials, quotients and the like from the hardware's approximations where all that becomes of them is rounded to 16 bits: they
/// err by a few float steps, far less than a quarter of a step of those types; there products and sums are rounded once together.
/// Conversions on the way that change no value are left out.
void cheap_functions(tile::Launch &launch);
/// The largest or smallest of a vector of 16-bit floats is found two by two before it is converted; a value that is rounded to bfloat16 and
/// back takes one instruction.
void pack_narrow_floats(tile::Launch &launch);
/// Lanes that are added, or subtracted, and rounded to their own 16-bit type: a loop of its own adds whole vectors, two lanes at once.
void add_narrow_vectors(tile::Launch &launch);
/// Gives shared buffers their places in the block's memory; static where they are small. UserError where they do not fit.
void plan_shared_memory(tile::Launch &launch, const GpuFacts &facts);
/// Puts block barriers between writes and reads of shared memory by different threads, in loops too.
void insert_barriers(tile::Launch &launch);
/// Notes which symbols and whether the status flag are wanted.
void collect_parameters(tile::Launch &launch, const SymbolRanges &symbols);

}  // namespace tilewright
