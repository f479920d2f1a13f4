// The associative combiners of reductions and scans, as Halide tuples, and their recognition in a Func.
#pragma once

#include <Halide.h>
#include <optional>
#include <string_view>
#include <vector>

namespace tilewright {

enum class Combiner {
    sum,
    product,
    minimum,
    maximum,
    logical_and,
    logical_or,
    arg_minimum,
    arg_maximum,  ///< (value, index): NaN wins, then the value, then the smaller index
    welford,      ///< (mean, m2, count), Chan et al. 1979
    log_sum_exp,  ///< (maximum, sum of exp(x - maximum)), Milakov and Gimelshein 2018
    last,         ///< keeps the newer term; not commutative
    general,      ///< recognised as a fold, not as associative: sequential
};
std::string_view name(Combiner combiner);

/// combine(accumulator, term), element by element of the tuple.
std::vector<Halide::Expr> combine(Combiner combiner, const std::vector<Halide::Expr> &accumulator, const std::vector<Halide::Expr> &term);
/// The value that combine() leaves unchanged, for terms of these types.
std::vector<Halide::Expr> identity(Combiner combiner, const std::vector<Halide::Type> &types);

/// Gives `func` (not yet defined) its pure definition, the identity, and the update that folds `terms` over `domain`.
void define_reduction(Halide::Func func, const std::vector<Halide::Var> &arguments, Combiner combiner,
                      const std::vector<Halide::Expr> &terms, const Halide::RDom &domain);
/// f(.., k) = combine(f(.., k-1), term(.., k)) along argument `axis`, whose extent is `extent`. The pure definition is the identity,
/// the update runs over all of [0, extent) and takes the identity in place of f(.., -1). `terms` are over the arguments.
void define_scan(Halide::Func func, const std::vector<Halide::Var> &arguments, int axis, Halide::Expr extent, Combiner combiner,
                 const std::vector<Halide::Expr> &terms);

/// The update of a reduction or scan Func, taken apart.
struct Fold {
    Combiner combiner = Combiner::general;
    std::vector<Halide::Expr> initial;   ///< the pure definition
    std::vector<Halide::Expr> terms;     ///< over the Func's arguments and RVars
    std::vector<std::string> variables;  ///< RVar names, in RDom order
    int scan_axis = -1;                  ///< the argument a scan runs along; -1 for a reduction
};
std::optional<Fold> match_fold(const Halide::Func &func);

/// The update of a scatter Func, taken apart: f(places) = combine(f(places), term), or term alone for Combiner::last, over `variables`.
struct ScatterUpdate {
    Combiner combiner = Combiner::general;
    std::vector<Halide::Expr> initial;
    std::vector<Halide::Expr> places;  ///< for each argument; over the arguments and RVars, at least one is read from a tensor or checked
    std::vector<Halide::Expr> terms;
    std::vector<std::string> variables;  ///< RVar names, in RDom order: the first runs fastest
};
std::optional<ScatterUpdate> match_scatter(const Halide::Func &func);

/// log(sum(exp(x))) from log_sum_exp's (maximum, sum).
Halide::Expr finish_log_sum_exp(const Halide::Expr &maximum, const Halide::Expr &sum);

}  // namespace tilewright
