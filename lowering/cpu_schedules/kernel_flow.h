// How values flow between the stages of a kernel once cheap stages are inlined: which stages are kept in memory, who reads them where,
// and inside which loops of the kernel's last stage they can be computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/algorithm/analysis.h"
#include "lowering/fusion/kernel.h"

namespace tilewright {

/// A stage whose values are kept, seen from the inlined stages' readers.
struct KeptStage {
    const Stage *stage = nullptr;
    Form form = Form::pointwise;
    bool is_output = false;
    std::vector<Read> reads;           ///< of kept stages and of inputs, through inlined stages; over this stage's arguments and RVars
    std::vector<std::string> readers;  ///< kept stages
    /// For each argument, the axis of the anchor that it runs along, or -1.
    std::vector<int> anchor_axes;
    /// Leading axes of the anchor inside whose loops it is computed; 0 where it is computed at the root.
    int depth = 0;
    double cost = 1;  ///< rough operations for each element or term
};

struct KernelFlow {
    std::vector<KeptStage> kept;  ///< in the algorithm's order
    const Stage *anchor = nullptr;
    const KeptStage *find(const std::string &name) const;
};

KernelFlow analyse_flow(const Kernel &kernel);

}  // namespace tilewright
