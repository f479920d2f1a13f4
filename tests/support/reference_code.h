// What the reference evaluator runs: values of tensors, and a definition's expressions as straight-line code.
#pragma once

#include <Halide.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/reference.h"
#include "tests/support/reference_math.h"

namespace tilewright::tests {

/// Elements of a tensor or of one result of a stage, in row-major order.
struct Values {
    Halide::Type type;
    std::vector<std::int64_t> sizes;
    std::vector<Scalar> elements;

    Values(Halide::Type type, std::vector<std::int64_t> sizes) : type(type), sizes(std::move(sizes)) {
        std::int64_t count = 1;
        for (std::int64_t size : this->sizes) {
            count *= size;
        }
        elements.resize(static_cast<std::size_t>(count));
    }
};

/// Calls `visit` for each point of a box, the last coordinate fastest.
template<typename Visit> void for_each_point(const std::vector<std::int64_t> &sizes, Visit visit) {
    std::vector<std::int64_t> at(sizes.size(), 0);
    for (std::int64_t size : sizes) {
        if (size == 0) {
            return;
        }
    }
    while (true) {
        visit(at);
        std::size_t dim = sizes.size();
        while (dim > 0 && ++at[dim - 1] == sizes[dim - 1]) {
            at[--dim] = 0;
        }
        if (dim == 0) {
            return;
        }
    }
}

std::vector<std::int64_t> evaluate_all(const std::vector<Extent> &extents, const SymbolValues &symbols);

/// The expressions of one definition as straight-line code: each node of the graph once.
class Code {
public:
    using Step = std::function<Scalar(const std::vector<Scalar> &)>;
    struct Environment {
        std::map<std::string, std::vector<Values *>> tensors;  ///< tuple elements by name
        const SymbolValues *symbols = nullptr;
        ReferenceResult *result = nullptr;
    };

    explicit Code(const Environment &environment) : environment(environment) {}
    int variable(const std::string &name);        ///< the next loop variable; all of them before the first compile()
    int compile(const Halide::Expr &expression);  ///< the slot that run() leaves its value in
    void run(const std::vector<std::int64_t> &variables);
    const Scalar &at(int slot) const { return slots[static_cast<std::size_t>(slot)]; }

private:
    int add(Step step);
    int constant(Scalar value);
    template<typename Function> int operation(const Halide::Expr &a, const Halide::Expr &b, Halide::Type type, Function function);
    template<typename Node, typename OnFloats, typename OnIntegers>
    int arithmetic(const Halide::Expr &e, OnFloats on_floats, OnIntegers on_integers);
    int compile_node(const Halide::Expr &e);
    int conversion(const Halide::Expr &value, Halide::Type to);
    int compile_variable(const std::string &name);
    int compile_call(const Halide::Expr &e);
    int compile_checked_index(const std::vector<std::size_t> &args);
    int compile_read(const Halide::Internal::Call &op, const std::vector<std::size_t> &args);

    const Environment &environment;
    std::vector<Step> steps;
    std::vector<Scalar> slots;
    std::vector<int> inputs;
    std::map<std::string, int> variables;
    std::map<const Halide::Internal::IRNode *, int> memo;
    std::vector<Halide::Expr> kept;
};

}  // namespace tilewright::tests
