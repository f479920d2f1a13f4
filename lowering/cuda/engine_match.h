// What the matchers of kernels for libraries share: how they give up, and tensors that an expression reads at plain places.
#pragma once

#include <Halide.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "runtime/plan.h"

namespace tilewright {

/// Why a kernel is not what an engine computes, in words that follow "because".
struct NoMatch {
    std::string why;
};
/// Throws NoMatch unless the condition holds.
void demand(bool condition, const char *why);

/// What `match` gives; where it throws NoMatch empty, with the reason in `why_not` where that is given.
template<typename Match> auto match_or_reason(Match &&match, std::string *why_not) -> std::optional<decltype(match())> {
    try {
        return match();
    } catch (const NoMatch &no_match) {
        if (why_not != nullptr) {
            *why_not = no_match.why;
        }
        return std::nullopt;
    }
}

/// Of the algorithm's inputs, the one of this name; -1 where it is none.
int input_index(const Algorithm &algorithm, const std::string &name);

/// The value below conversions between floating-point types.
Halide::Expr without_conversions(Halide::Expr e);

/// A read of an input at single variables and zeros.
struct PlainRead {
    int input = -1;
    std::map<std::string, Extent> strides;  ///< of the variables, elements
};
std::optional<PlainRead> plain_read(const Algorithm &algorithm, const Halide::Expr &e);

/// The input with a dimension for each of `axes` ("" for one of a single place); its size is 1 where the read does not vary along the axis.
EngineTensor engine_tensor(const Algorithm &algorithm, const PlainRead &read, const std::vector<std::string> &axes,
                           const std::vector<Extent> &sizes);

/// The product's only output, stored by `stage`, with these dimensions; its buffer stands behind the inputs.
EngineTensor engine_output(const Algorithm &algorithm, const Stage &stage, const std::vector<int> &dimensions);

}  // namespace tilewright
