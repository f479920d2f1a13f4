#include "apps/api/plain_funcs.h"

#include "dsl/error.h"

namespace tilewright {
namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

class Renamer : public hi::IRGraphMutator {
public:
    explicit Renamer(const Algorithm &algorithm) {
        for (const TensorInput &input : algorithm.inputs) {
            inputs_.emplace(input.param.name(), input.param.parameter());
        }
    }
    void add(const std::string &old_name, const hi::Function &function) { functions_.insert_or_assign(old_name, function); }
    void set_domain(const hi::ReductionDomain &domain) { domain_ = domain; }

    using hi::IRGraphMutator::mutate;
    std::vector<Expr> all(const std::vector<Expr> &expressions) {
        std::vector<Expr> mutated;
        for (const Expr &expression : expressions) {
            mutated.push_back(mutate(expression));
        }
        return mutated;
    }

protected:
    using hi::IRGraphMutator::visit;

    Expr visit(const hi::Call *op) override {
        if (op->call_type != hi::Call::Halide) {
            return hi::IRGraphMutator::visit(op);
        }
        const std::vector<Expr> arguments = all(op->args);
        const auto function = functions_.find(op->name);
        if (function != functions_.end()) {
            return hi::Call::make(function->second, arguments, op->value_index);
        }
        // An ImageParam's own Func reads the parameter at its arguments.
        hi::Function wrapper(op->func);
        const auto *read = wrapper.values().size() == 1 ? wrapper.values()[0].as<hi::Call>() : nullptr;
        const auto input = read && read->param.defined() ? inputs_.find(read->param.name()) : inputs_.end();
        if (input == inputs_.end()) {
            user_error(
                "a stage reads \"{}\", which is neither a stage nor an input of the kernel; declare it with stage() or input() first",
                plain_name(op->name));
        }
        return hi::Call::make(input->second, arguments);
    }

    Expr visit(const hi::Variable *op) override {
        if (!op->reduction_domain.defined()) {
            return op;
        }
        return hi::Variable::make(op->type, plain_name(op->name), domain_);
    }

private:
    std::map<std::string, Halide::Parameter> inputs_;
    std::map<std::string, hi::Function> functions_;
    hi::ReductionDomain domain_;
};

hi::ReductionDomain plain_domain(const hi::ReductionDomain &domain, Renamer &renamer) {
    std::vector<hi::ReductionVariable> variables;
    for (const hi::ReductionVariable &variable : domain.domain()) {
        variables.push_back({plain_name(variable.var), renamer.mutate(variable.min), renamer.mutate(variable.extent)});
    }
    return hi::ReductionDomain(variables);
}

}  // namespace

std::string plain_name(const std::string &halide_name) {
    std::string plain;
    for (std::size_t at = 0; at < halide_name.size(); ++at) {
        if (halide_name[at] != '$') {
            plain += halide_name[at];
            continue;
        }
        while (at + 1 < halide_name.size() && std::isdigit(static_cast<unsigned char>(halide_name[at + 1]))) {
            ++at;
        }
    }
    return plain;
}

Algorithm with_plain_funcs(const Algorithm &algorithm) {
    Algorithm plain{algorithm.inputs, {}, algorithm.outputs, algorithm.symbols};
    Renamer renamer(algorithm);
    for (const Stage &stage : algorithm.stages) {
        const hi::Function source = stage.func.function();
        const std::string name = plain_name(source.name());
        if (plain.find_stage(name)) {
            user_error("two stages are called \"{}\"; give one of them another name", name);
        }
        if (source.updates().size() > 1) {
            user_error("stage {} has {} updates where a stage may have one; write the others as stages of their own", name,
                       source.updates().size());
        }
        hi::Function function(name);
        function.define(source.args(), renamer.all(source.values()));
        renamer.add(source.name(), function);
        if (source.has_update_definition()) {
            const hi::Definition &update = source.update(0);
            const hi::ReductionDomain old_domain(update.schedule().rvars());
            const hi::ReductionDomain domain = plain_domain(old_domain, renamer);
            renamer.set_domain(domain);
            hi::ReductionDomain restricted = domain;
            restricted.set_predicate(renamer.mutate(update.predicate()));
            function.define_update(renamer.all(update.args()), renamer.all(update.values()), domain);
        }
        plain.stages.push_back({Halide::Func(function), stage.extents, stage.reduction_extents, stage.op, stage.module_path});
    }
    for (TensorOutput &output : plain.outputs) {
        output.stage = plain_name(output.stage);
    }
    return plain;
}

}  // namespace tilewright
