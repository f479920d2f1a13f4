// An algorithm: named Halide Funcs over input tensors, with symbolic extents. It says what is computed and nothing of how.
//
// Conventions that every writer and reader of algorithms keeps:
//  * A Func's arguments follow PyTorch's order of dimensions: argument 0 is the outermost. Every axis starts at 0.
//  * Halide's Vars are 32-bit; an axis beyond 2^31-1 is refused by name. Extents inside expressions come from to_halide().
//  * Floating-point functions and wrapping integer arithmetic are the primitives of dsl/algorithm/math.h. A Func is never handed to
//    Halide's simplifier before the target has legalised them.
//  * A Func has a pure definition and at most one update (a reduction, a scan or a scatter), or is an extern stage (sort).
#pragma once

#include <Halide.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph/extent.h"
#include "dsl/graph/tensor.h"

namespace tilewright {

/// What a stage does, read off its Func by classify(); the lowering looks at nothing else.
enum class Form {
    pointwise,    ///< each element from elements at affine places of its inputs (views, broadcasts, concatenations, pads too)
    gather,       ///< pointwise, with an index that is itself read from a tensor
    reduction,    ///< an update over an RDom that folds terms into the element: f(x) = combine(f(x), term(x, r))
    contraction,  ///< a sum of products of two factors, each constant along an axis the other varies along, read at single variables
    window,       ///< a reduction that reads an input at sums of an axis and a reduction variable (convolution, pooling)
    scan,         ///< f(x, k) = combine(f(x, k - 1), term(x, k)); starts from the combiner's identity
    scatter,      ///< an update whose left-hand place is read from a tensor
    sort,         ///< an extern stage: stable sort along the last axis, yields values and int64 indices
};
std::string_view name(Form form);

/// A tensor that an algorithm reads. Its ImageParam has one dimension for each of the tensor's, in PyTorch's order; strides are
/// taken from `meta`, which may be non-contiguous or broadcast (stride 0).
struct TensorInput {
    Halide::ImageParam param;
    TensorMeta meta;
    const std::string &name() const { return name_; }
    std::string name_;
};

/// A named Func, with the extent of each of its arguments and of each reduction variable.
struct Stage {
    Halide::Func func;
    std::vector<Extent> extents;            ///< of the arguments, outermost first
    std::vector<Extent> reduction_extents;  ///< of the update's RVars, in RDom order; empty without an update
    std::string op;                         ///< operator it comes from, "aten.softmax.int"; for people
    std::string module_path;                ///< for people; never part of a hash

    std::string name() const { return func.name(); }
    int rank() const { return static_cast<int>(extents.size()); }
};

/// A value that leaves the algorithm: one element of a stage's tuple, stored as `meta` says.
struct TensorOutput {
    std::string name;  ///< unique among inputs and outputs
    std::string stage;
    int tuple_index = 0;
    TensorMeta meta;  ///< strides are the ones PyTorch gives
};

/// Stages in an order in which each stands after those it reads.
struct Algorithm {
    std::vector<TensorInput> inputs;
    std::vector<Stage> stages;
    std::vector<TensorOutput> outputs;
    SymbolRanges symbols;

    const Stage *find_stage(std::string_view name) const;
    const TensorInput *find_input(std::string_view name) const;
};

/// Int(32) expression of an extent; a symbol becomes a scalar Halide parameter of its name.
Halide::Expr to_halide(const Extent &extent);
/// Inverse, for bounds that Halide infers; empty where the expression is none of Extent's.
std::optional<Extent> from_halide(const Halide::Expr &expression);
/// Storage type in Halide: boolean is UInt(1), bfloat16 is BFloat(16). UserError for a type that is not supported.
Halide::Type to_halide(DType type);
DType from_halide(Halide::Type type);

/// A Func of exactly this name. (Halide's own constructor appends "$1" where a process has used the name before.)
Halide::Func named_func(const std::string &name);
/// The element of an input at these indices, outermost first: an Image call. (ImageParam's operator() calls a wrapper Func instead.)
Halide::Expr read(const Halide::ImageParam &input, const std::vector<Halide::Expr> &indices);
/// Domain with variables r0, r1, … from 0. Without extents it has one point.
Halide::RDom reduction_domain(const std::vector<Halide::Expr> &extents);
/// Vars d0, d1, …
std::vector<Halide::Var> argument_vars(int rank);

std::string print(const Algorithm &algorithm);
std::string print(const Stage &stage);    ///< one line, and one for each value that several places share
void verify(const Algorithm &algorithm);  ///< the conventions above; InternalError with the stage

}  // namespace tilewright
