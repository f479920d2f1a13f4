// Finds the axes of a nest that a stage's own arguments and RVars run over: by what both read, by the anchor's loops, by extents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/nests/placed_reads.h"

namespace tilewright {

class AxisMatcher {
public:
    /// `roots`: the anchor's arguments and RVars over the nest's axes.
    AxisMatcher(const Algorithm &algorithm, const Nest &nest, const Substitution &roots)
        : algorithm_(algorithm), nest_(nest), roots_(roots) {}

    /// Takes, for the variables of `s` among `wanted`, the indices with which the nest (`known`, by producer) reads the places that `own`
    /// reads.
    void by_reads(const Stage &s, const std::vector<PlacedRead> &own, const std::map<std::string, std::vector<PlacedRead>> &known,
                  const std::vector<std::string> &wanted, Substitution &environment) const;
    /// Gives RVars the anchor's loops of equal extents, in order: whatever the stage reads, its terms are spread over threads as the
    /// anchor's are.
    bool by_anchor(const Stage &s, const std::vector<std::string> &variables, Member &member) const;
    /// The first axis of that extent that nothing else runs over.
    void by_extent(const std::string &variable, const Extent &extent, Substitution &environment) const;
    /// Reduction variables must run over axes that the value does not vary along, and over each of them whole.
    bool disjoint(const Stage &s, const std::vector<std::string> &variables, const Member &member) const;

private:
    std::optional<Substitution> unify(const PlacedRead &mine, const PlacedRead &other, const std::vector<std::string> &wanted,
                                      const Substitution &environment, const Stage &s) const;
    Extent extent_at(const Halide::Expr &index) const;

    const Algorithm &algorithm_;
    const Nest &nest_;
    const Substitution &roots_;
};

}  // namespace tilewright
