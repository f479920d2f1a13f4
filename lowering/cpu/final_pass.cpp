#include "lowering/cpu/final_pass.h"

#include <map>
#include <string>

namespace tilewright {

using namespace Halide::Internal;

namespace {

class FinalPass : public IRMutator {
public:
    explicit FinalPass(const std::vector<Halide::Func> &outputs) {
        for (Halide::Func output : outputs) {
            const std::vector<Halide::OutputImageParam> buffers = output.output_buffers();
            for (std::size_t i = 0; i < buffers.size(); i++) {
                const std::string name = buffers.size() == 1 ? output.name() : output.name() + "." + std::to_string(i);
                parameters_.emplace(name, buffers[i].parameter());
            }
        }
    }

private:
    using IRMutator::visit;
    Halide::Expr visit(const Load *op) override {
        const auto output = parameters_.find(op->name);
        if (output == parameters_.end() || op->param.defined()) {
            return IRMutator::visit(op);
        }
        return Load::make(op->type, op->name, mutate(op->index), op->image, output->second, mutate(op->predicate), op->alignment);
    }

    Halide::Expr visit(const Call *op) override {
        if (op->is_intrinsic(Call::strict_div) && is_const_zero(op->args[1])) {
            const Halide::Expr zero = Call::make(op->type, Call::strict_mul, {op->args[1], make_one(op->type)}, Call::PureIntrinsic);
            return Call::make(op->type, Call::strict_div, {mutate(op->args[0]), zero}, Call::PureIntrinsic);
        }
        return IRMutator::visit(op);
    }

    std::map<std::string, Halide::Parameter> parameters_;
};

}  // namespace

IRMutator *make_final_pass(const std::vector<Halide::Func> &outputs) { return new FinalPass(outputs); }

}  // namespace tilewright
