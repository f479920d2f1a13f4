#include "lowering/cpu/output_loads.h"

#include <map>
#include <string>

namespace tilewright {

using namespace Halide::Internal;

namespace {

class MarkOutputLoads : public IRMutator {
public:
    explicit MarkOutputLoads(const std::vector<Halide::Func> &outputs) {
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

    std::map<std::string, Halide::Parameter> parameters_;
};

}  // namespace

IRMutator *mark_output_loads(const std::vector<Halide::Func> &outputs) {
    return new MarkOutputLoads(outputs);
}

}  // namespace tilewright
