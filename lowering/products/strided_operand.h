// Places of a tensor that are sums of strides times axes: what the bulk copy unit can fetch and store.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lowering/nests/nest.h"

namespace tilewright {

struct StridedOperand {
    tile::Buffer buffer;
    Halide::Type type;                      ///< of the elements as stored
    std::map<std::string, Extent> strides;  ///< elements, for each axis that the address varies with
    Extent offset = 0;                      ///< elements, where every axis is 0
    int packing = 1;                        ///< neighbours along the packed axis that share an element

    Extent stride(const std::string &axis) const;
};

/// What stands below conversions that change no value: widening from float16 or bfloat16, and none.
Halide::Expr below_widening(Halide::Expr e);
/// `factor` is an expression over the nest's axes and the launch's buffers; conversions that lose nothing may stand around the read.
/// Empty where the factor computes, gathers, pads, or reads at places that are no sum of strides times axes.
std::optional<StridedOperand> match_strided_operand(const Halide::Expr &factor, const Nest &nest, const tile::Launch &launch);

/// The place `indices` of a buffer in global memory in the same terms. Along `packed`, where it is given, several neighbours may share an
/// element.
std::optional<StridedOperand> match_strided_place(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices, const Nest &nest,
                                                  const std::string &packed = {});

}  // namespace tilewright
