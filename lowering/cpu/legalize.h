// Rewrites an algorithm's expressions into ones that Halide compiles to PyTorch's values: expands the primitives of
// dsl/algorithm/math.h, makes float arithmetic strict, and redirects reads to the tensors and Funcs of one compilation.
#pragma once

#include <Halide.h>
#include <map>
#include <memory>
#include <string>

namespace tilewright {

class PackedInput;

/// Where the reads of one compilation go.
struct LegalizeContext {
    std::map<std::string, Halide::Parameter> inputs;                 ///< by the algorithm's parameter name; absent ones stay
    std::map<std::string, Halide::Internal::Function> functions;     ///< by the algorithm's Func name; absent ones stay
    std::map<std::string, Halide::Internal::Function> stage_copies;  ///< Funcs to read in the place of stages
    std::map<std::string, Halide::Internal::Function> input_copies;  ///< Funcs to read in the place of inputs, by parameter name
    std::map<std::string, std::shared_ptr<const PackedInput>>
        input_packs;                                 ///< packed tensors to read in the place of inputs, by parameter name
    std::string padded;                              ///< a Func that is read beyond the stage's own extents
    std::map<std::string, Halide::Expr> clamps;      ///< what to read at in the place of a variable that may pass its axis's end
    std::map<std::string, Halide::Expr> reductions;  ///< what the stage's reduction variables are in terms of its loops
};

/// Name of the Handle argument through which checked indices raise the plan's error flag.
inline constexpr const char *status_argument = "tilewright_status";

/// Rewrites each expression. Work is proportional to the number of distinct nodes; sharing is kept.
class Legalizer : public Halide::Internal::IRGraphMutator {
public:
    explicit Legalizer(LegalizeContext context = {}) : context_(std::move(context)) {}
    bool uses_status() const { return uses_status_; }  ///< an expression so far checks an index or a divisor
    bool checks_divisors() const { return checks_divisors_; }
    const std::map<std::string, Halide::Expr> &clamps() const { return context_.clamps; }

    using Halide::Internal::IRGraphMutator::mutate;

protected:
    using Halide::Internal::IRGraphMutator::visit;
    Halide::Expr visit(const Halide::Internal::Call *op) override;
    Halide::Expr visit(const Halide::Internal::Variable *op) override;
    Halide::Expr visit(const Halide::Internal::Add *op) override;
    Halide::Expr visit(const Halide::Internal::Sub *op) override;
    Halide::Expr visit(const Halide::Internal::Mul *op) override;
    Halide::Expr visit(const Halide::Internal::Div *op) override;
    Halide::Expr visit(const Halide::Internal::Min *op) override;
    Halide::Expr visit(const Halide::Internal::Max *op) override;
    Halide::Expr visit(const Halide::Internal::EQ *op) override;
    Halide::Expr visit(const Halide::Internal::NE *op) override;
    Halide::Expr visit(const Halide::Internal::LT *op) override;
    Halide::Expr visit(const Halide::Internal::LE *op) override;
    Halide::Expr visit(const Halide::Internal::GT *op) override;
    Halide::Expr visit(const Halide::Internal::GE *op) override;
    Halide::Expr visit(const Halide::Internal::Cast *op) override;

private:
    Halide::Expr expand(std::string_view primitive, const Halide::Internal::Call *op, const std::vector<Halide::Expr> &args);
    Halide::Expr read_padded(const Halide::Internal::Call *op) const;
    Halide::Expr read_copy(const Halide::Internal::Call *op, const Halide::Internal::Function &copy, std::vector<Halide::Expr> args);
    std::vector<Halide::Expr> beyond_the_end(const Halide::Internal::Call *op, std::vector<Halide::Expr> args) const;
    Halide::Expr status();
    Halide::Expr checked_divisor(const Halide::Expr &divisor);
    Halide::Expr checked_index(const std::vector<Halide::Expr> &args);

    LegalizeContext context_;
    bool uses_status_ = false, checks_divisors_ = false;
};

Halide::Expr legalize(const Halide::Expr &expr, const LegalizeContext &context = {});
std::vector<Halide::Expr> legalize_all(Legalizer &legalizer, const std::vector<Halide::Expr> &expressions);

}  // namespace tilewright
