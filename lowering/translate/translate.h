// Turns a graph of core operators into an algorithm: Halide Funcs over the program's tensors.
#pragma once

#include <functional>
#include <string>

#include "dsl/algorithm/algorithm.h"
#include "dsl/graph/program.h"

namespace tilewright {

class TranslationContext;
using Translation = std::function<void(TranslationContext &, const Node &)>;
void register_translation(const std::string &target, Translation translation);

struct Translated {
    Algorithm algorithm;  ///< inputs are named like the placeholders, outputs "out0"… in the order of the program's outputs
    std::vector<std::string> index_sites;  ///< messages for math::checked_index's sites
};
/// UserError lists every operator that has no translation, at once.
Translated translate(const Program &program);

}  // namespace tilewright
