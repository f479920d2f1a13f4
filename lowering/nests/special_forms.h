// Launches of the forms that are no fold over a nest: scatters, which write where an index says, and sorts.
#pragma once

#include "lowering/nests/lower_nest.h"

namespace tilewright {

/// Initial values first; then every destination is owned by one thread, which goes through all updates in their order and carries out those
/// that are its own. So the last write wins and sums have one order, without atomics; with atomic() updates run in parallel.
std::vector<tile::Launch> lower_scatter(const Kernel &kernel, const Placement &placement, int nest, Storage &storage,
                                        const ScheduledKernel &schedule, const GpuFacts &facts);
/// A block a row; in shared memory where the row fits, else in scratch.
std::vector<tile::Launch> lower_sort(const Kernel &kernel, const Placement &placement, int nest, Storage &storage,
                                     const ScheduledKernel &schedule, const GpuFacts &facts);

/// Indices of element `flat` of a row-major array.
std::vector<Halide::Expr> unflatten(const std::vector<Extent> &extents, const Halide::Expr &flat);

}  // namespace tilewright
