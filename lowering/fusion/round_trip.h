// Conversions of a wide value to a narrow type and back that nobody else sees.
#pragma once

#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

/// Of convert(wide, narrow value), where the narrow value was made by convert() from the wide type and nobody else sees it: the wide value.
/// A product keeps its operands narrow: so matrix units multiply them.
struct RoundTrip {
    Halide::Expr wide;  ///< undefined: there is none
    int narrow = -1;    ///< the node that is left out
};
/// `members`: the kernel's nodes, sorted; the conversion is followed only inside of it.
RoundTrip find_round_trip(const StageGraph &graph, const std::vector<int> &members, const Halide::Internal::Call *call, int reader);

}  // namespace tilewright
