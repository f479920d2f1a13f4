// A mutator that meets the six comparisons in one place.
#pragma once

#include <Halide.h>

namespace tilewright {

/// Derived has `template<typename Node> Halide::Expr compare(const Node *op)`, and may override further visits.
template<typename Derived> class ComparisonMutator : public Halide::Internal::IRGraphMutator {
protected:
    using Halide::Internal::IRGraphMutator::visit;
    Halide::Expr visit(const Halide::Internal::EQ *op) override { return derived().compare(op); }
    Halide::Expr visit(const Halide::Internal::NE *op) override { return derived().compare(op); }
    Halide::Expr visit(const Halide::Internal::LT *op) override { return derived().compare(op); }
    Halide::Expr visit(const Halide::Internal::LE *op) override { return derived().compare(op); }
    Halide::Expr visit(const Halide::Internal::GT *op) override { return derived().compare(op); }
    Halide::Expr visit(const Halide::Internal::GE *op) override { return derived().compare(op); }

private:
    Derived &derived() { return static_cast<Derived &>(*this); }
};

}  // namespace tilewright
