#include "dsl/algorithm/algorithm.h"

#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

const Stage *Algorithm::find_stage(std::string_view name) const {
    for (const Stage &stage : stages) {
        if (stage.func.name() == name) {
            return &stage;
        }
    }
    return nullptr;
}

const TensorInput *Algorithm::find_input(std::string_view name) const {
    for (const TensorInput &input : inputs) {
        if (input.name_ == name) {
            return &input;
        }
    }
    return nullptr;
}

Halide::Func named_func(const std::string &name) { return Halide::Func(hi::Function(name)); }

Expr read(const Halide::ImageParam &input, const std::vector<Expr> &indices) { return hi::Call::make(input.parameter(), indices); }

Halide::RDom reduction_domain(const std::vector<Expr> &extents) {
    std::vector<hi::ReductionVariable> variables;
    for (const Expr &extent : extents) {
        variables.push_back({"r" + std::to_string(variables.size()), 0, extent});
    }
    if (variables.empty()) {
        variables.push_back({"r0", 0, 1});
    }
    return Halide::RDom(hi::ReductionDomain(variables));
}

std::vector<Halide::Var> argument_vars(int rank) {
    std::vector<Halide::Var> vars;
    for (int i = 0; i < rank; i++) {
        vars.emplace_back("d" + std::to_string(i));
    }
    return vars;
}

namespace {

struct Producer {
    int rank = 0;
    int outputs = 1;
};

class Verifier {
public:
    explicit Verifier(const Algorithm &algorithm) {
        for (const TensorInput &input : algorithm.inputs) {
            check(input.param.dimensions() == input.meta.rank(), "input {} has {} dimensions and sizes {}", input.name(),
                  input.param.dimensions(), to_string(input.meta.sizes));
            check(input.param.name() == input.name(), "input {} has a parameter named {}", input.name(), input.param.name());
            add(input.name(), {input.meta.rank(), 1});
        }
        for (const Stage &stage : algorithm.stages) {
            verify_stage(stage);
            add(stage.name(), {stage.rank(), stage.func.outputs()});
        }
        std::set<std::string> names;
        for (const TensorOutput &output : algorithm.outputs) {
            const Stage *stage = algorithm.find_stage(output.stage);
            check(stage != nullptr, "output {} names stage {}, which there is not", output.name, output.stage);
            check(names.insert(output.name).second, "two outputs are named {}", output.name);
            check(output.tuple_index < stage->func.outputs(), "output {}: {} has no element {}", output.name, output.stage,
                  output.tuple_index);
            check(output.meta.sizes == stage->extents, "output {} has sizes {}, {} has {}", output.name, to_string(output.meta.sizes),
                  output.stage, to_string(stage->extents));
            check(stage->func.types()[output.tuple_index] == to_halide(output.meta.dtype), "output {} is {}, {} yields {}", output.name,
                  tilewright::name(output.meta.dtype), output.stage,
                  tilewright::name(from_halide(stage->func.types()[output.tuple_index])));
        }
    }

private:
    template<typename... Args> static void check(bool condition, fmt::format_string<Args...> format, Args &&...args) {
        internal_assert(condition, format, std::forward<Args>(args)...);
    }

    void add(const std::string &name, Producer producer) {
        check(producers.emplace(name, producer).second, "two tensors or stages are named {}", name);
    }

    void verify_stage(const Stage &stage) {
        const std::string name = stage.name();
        check(stage.func.defined(), "stage {} has no definition", name);
        hi::Function function = stage.func.function();
        check(function.dimensions() == stage.rank(), "stage {} has {} arguments and {} extents", name, function.dimensions(), stage.rank());
        check(function.updates().size() <= 1, "stage {} has {} updates", name, function.updates().size());
        size_t variables = function.updates().empty() ? 0 : function.update(0).schedule().rvars().size();
        check(variables == stage.reduction_extents.size(), "stage {} has {} reduction variables and {} extents", name, variables,
              stage.reduction_extents.size());
        for (const Read &read : reads_of(stage)) {
            auto found = producers.find(read.producer);
            check(found != producers.end(), "stage {} reads {}, which does not stand before it", name, read.producer);
            check(static_cast<int>(read.indices.size()) == found->second.rank || function.has_extern_definition(),
                  "stage {} reads {} with {} indices, it has {} dimensions", name, read.producer, read.indices.size(), found->second.rank);
            check(read.tuple_index < found->second.outputs, "stage {} reads element {} of {}", name, read.tuple_index, read.producer);
        }
        classify(stage);
    }

    std::map<std::string, Producer> producers;
};

}  // namespace

void verify(const Algorithm &algorithm) { Verifier verifier(algorithm); }

}  // namespace tilewright
