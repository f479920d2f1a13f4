// Mean and sum of squared deviations of rows in two passes around a centre, with vector lanes and no division for each element. Exact to
// rounding at any mean: Welford's running mean, in float32, stops moving where its steps fall below the mean's last place.
#pragma once

#include "lowering/cpu/partial_fold.h"

namespace tilewright {

/// The stage is a Welford fold of plain values over rows that are never empty, and its parts fit one expression.
bool has_centred_moments(const Stage &stage, const ScheduledStage &scheduled, const SymbolRanges &symbols);

struct CentredMoments {
    Halide::Func sums;     ///< parts of the sum of x - first; arguments as of STAGE_partial
    Halide::Func centre;   ///< the mean, rounded; arguments of the stage
    Halide::Func partial;  ///< parts of (sum of x - centre, sum of (x - centre)^2)
};

/// Defines all three, and `func`, the stage itself.
void define_centred_moments(const CentredMoments &moments, const Stage &stage, const ScheduledStage &partial,
                            const ScheduledStage &scheduled, Legalizer &legalizer);
/// The stage itself: (mean, sum of squared deviations, count).
void define_from_centred(Halide::Func func, const CentredMoments &moments, const Stage &stage, const ScheduledStage &scheduled);

}  // namespace tilewright
