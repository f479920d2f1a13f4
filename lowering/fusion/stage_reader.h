// A stage whose definition becomes part of a kernel, in its new variables d0… and r0…, and where its reads lead.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/stage_graph.h"

namespace tilewright {

struct StageReader {
    int node = -1;
    std::vector<IndexAxis> axes;
    std::map<std::string, Halide::Expr> renamed;
    Halide::RDom domain;
    std::map<std::string, Halide::Expr> domain_variables;  ///< r0… as variables of the domain
    SamplePoints samples{{}, {}};
    bool is_guarded = false;  ///< reads stand under conditions on indices: they may point outside

    std::vector<Halide::Expr> simplified(std::vector<Halide::Expr> indices) const;
};
StageReader reader_of(const StageGraph &graph, int index);

/// A read followed through index maps to where the value is computed or stored.
struct ReadSource {
    int node = -1;   ///< or -1
    int input = -1;  ///< or -1
    int tuple_index = 0;
    std::vector<Halide::Expr> indices;
    /// The index maps between, from the reader's side, each with the indices at which it is read.
    struct Map {
        int node = -1;
        std::vector<Halide::Expr> indices;
    };
    std::vector<Map> maps;
};
ReadSource follow(const StageGraph &graph, const Halide::Internal::Call *call, std::vector<Halide::Expr> indices,
                  const StageReader &reader);

}  // namespace tilewright
