#include "lowering/assemble_plan.h"

#include <map>

#include "dsl/error.h"
#include "lowering/renumber_step.h"

namespace tilewright {
namespace {

class Assembler {
public:
    Assembler(Plan &plan, const Algorithm &algorithm) : plan_(plan), algorithm_(algorithm) {}

    void add_inputs(const Signature &signature) {
        for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
            const InputSpec &input = signature.inputs[i];
            if (input.constant) {
                continue;
            }
            PlanBuffer buffer{PlanBuffer::Kind::weight, input.placeholder, signature.metas[i], static_cast<int>(i)};
            if (input.kind == InputKind::user_input) {
                buffer.kind = PlanBuffer::Kind::input;
                buffer.index = static_cast<int>(plan_.user_inputs.size());
                plan_.user_inputs.push_back(static_cast<int>(plan_.buffers.size()));
            }
            add(std::move(buffer));
        }
    }

    void add_outputs(const Signature &signature) {
        for (std::size_t k = 0; k < signature.outputs.size(); ++k) {
            const OutputSpec &spec = signature.outputs[k];
            const TensorOutput &output = algorithm_.outputs[k];
            PlanBuffer buffer{PlanBuffer::Kind::intermediate, output.name, output.meta};
            if (spec.kind == OutputKind::user_output) {
                buffer.kind = PlanBuffer::Kind::output;
                buffer.index = static_cast<int>(plan_.user_outputs.size());
                plan_.user_outputs.push_back(static_cast<int>(plan_.buffers.size()));
            } else {
                buffer.write_back_to = buffer_named(spec.target);
            }
            add(std::move(buffer));
        }
    }

    void add_intermediates(const Partition &partition) {
        for (const Intermediate &tensor : partition.intermediates) {
            if (!by_name_.contains(tensor.name)) {
                add({PlanBuffer::Kind::intermediate, tensor.name, tensor.meta});
            }
        }
    }

    void add_code(std::span<const CompiledKernel> compiled) {
        for (const CompiledKernel &kernel : compiled) {
            code_base_.push_back(static_cast<int>(plan_.code.size()));
            plan_.code.insert(plan_.code.end(), kernel.code.begin(), kernel.code.end());
        }
    }

    void add_call(const KernelCall &call, const Kernel &kernel, const CompiledKernel &compiled) {
        std::vector<Place> places;  // for each tensor that the compiled kernel counts
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            TensorMeta seen = kernel.algorithm.inputs[i].meta;
            seen.offset = call.input_offsets.empty() ? seen.offset : seen.offset + call.input_offsets[i];
            places.push_back(place(call.inputs[i], seen));
        }
        for (std::size_t i = 0; i < call.outputs.size(); ++i) {
            places.push_back(place(call.outputs[i], kernel.algorithm.outputs[i].meta));
        }
        for (const TensorMeta &meta : compiled.intermediates) {
            places.push_back({static_cast<int>(plan_.buffers.size()), {}});
            plan_.buffers.push_back({PlanBuffer::Kind::intermediate, fmt::format("{}.{}", kernel.name, plan_.buffers.size()), meta});
        }
        for (Step step : compiled.steps) {
            step.kernel = kernel.name;
            step.sites = call.index_sites;
            renumber_tensors(step, places, code_base_[call.kernel]);
            plan_.steps.push_back(std::move(step));
        }
    }

private:
    /// A tensor of the plan, and what a kernel sees of it where that is not the whole tensor as it is.
    struct Place {
        int buffer = -1;
        std::optional<TensorMeta> view;
    };

    Place place(const std::string &name, const TensorMeta &seen) const {
        const int buffer = buffer_named(name);
        const TensorMeta &meta = plan_.buffers[buffer].meta;
        const bool whole = seen.sizes == meta.sizes && seen.strides == meta.strides && seen.offset == Extent(0);
        return {buffer, whole ? std::nullopt : std::optional(seen)};
    }

    void add(PlanBuffer buffer) {
        const int index = static_cast<int>(plan_.buffers.size());
        internal_assert(by_name_.emplace(buffer.name, index).second, "two tensors of the plan are called \"{}\"", buffer.name);
        plan_.buffers.push_back(std::move(buffer));
    }

    int buffer_named(const std::string &name) const {
        const auto found = by_name_.find(name);
        internal_assert(found != by_name_.end(), "no tensor of the plan is called \"{}\"", name);
        return found->second;
    }

    static void renumber_tensors(Step &step, const std::vector<Place> &places, int code_base) {
        const auto place_of = [&](int tensor) -> const Place & {
            internal_assert(tensor >= 0 && tensor < static_cast<int>(places.size()), "kernel \"{}\" names its tensor {} of {}", step.kernel,
                            tensor, places.size());
            return places[tensor];
        };
        Renumbering renumbering{code_base, {}, {}};
        renumbering.tensor = [&](BufferArgument &argument) {
            const Place &place = place_of(argument.buffer);
            argument.buffer = place.buffer;
            argument.view = argument.view ? argument.view : place.view;
        };
        renumbering.elements = [&](int &tensor, Extent &offset) {
            const Place &place = place_of(tensor);
            tensor = place.buffer;
            offset = offset + (place.view ? place.view->offset : Extent(0));
        };
        renumber(step, renumbering);
    }

    Plan &plan_;
    const Algorithm &algorithm_;
    std::map<std::string, int> by_name_;
    std::vector<int> code_base_;  ///< of each kernel
};

}  // namespace

Signature signature_of(const Program &program) {
    Signature signature{program.inputs, {}, program.outputs, program.symbols};
    for (const InputSpec &input : program.inputs) {
        const Node *node = program.graph.find(input.placeholder);
        internal_assert(node != nullptr, "the program has no placeholder \"{}\"", input.placeholder);
        const auto *meta = std::get_if<TensorMeta>(&node->meta);
        if (!meta && !input.constant) {
            user_error("input \"{}\" is no tensor and has no constant value; export the model with that argument as a tensor",
                       input.placeholder);
        }
        signature.metas.push_back(meta ? *meta : TensorMeta{});
    }
    return signature;
}

Plan assemble_plan(TargetKind target, const std::string &device, const Signature &signature, const Algorithm &algorithm,
                   const std::vector<std::string> &index_sites, const Partition &partition, std::span<const CompiledKernel> compiled) {
    internal_assert(algorithm.outputs.size() == signature.outputs.size(), "the algorithm has {} outputs where the program has {}",
                    algorithm.outputs.size(), signature.outputs.size());
    Plan plan;
    plan.target = target;
    plan.device = device;
    plan.symbols = signature.symbols;
    plan.inputs = signature.inputs;
    for (const std::string &message : index_sites) {
        plan.index_sites.push_back({message});
    }
    Assembler assembler(plan, algorithm);
    assembler.add_inputs(signature);
    assembler.add_outputs(signature);
    assembler.add_intermediates(partition);
    assembler.add_code(compiled);
    for (const KernelCall &call : partition.calls) {
        assembler.add_call(call, partition.kernels[call.kernel], compiled[call.kernel]);
    }
    verify(plan);
    return plan;
}

Plan plan_of_kernel(TargetKind target, const std::string &device, const Kernel &kernel, const CompiledKernel &compiled,
                    const std::vector<bool> &fixed_inputs) {
    const Algorithm &algorithm = kernel.algorithm;
    Partition partition;
    partition.kernels.push_back(kernel);
    KernelCall call;
    Signature signature;
    signature.symbols = algorithm.symbols;
    for (std::size_t i = 0; i < algorithm.inputs.size(); ++i) {
        const TensorInput &input = algorithm.inputs[i];
        const bool fixed = i < fixed_inputs.size() && fixed_inputs[i];
        call.inputs.push_back(input.name());
        signature.inputs.push_back({fixed ? InputKind::parameter : InputKind::user_input, input.name(), "", {}, {}});
        signature.metas.push_back(input.meta);
        signature.metas.back().offset = 0;
    }
    for (const TensorOutput &output : algorithm.outputs) {
        call.outputs.push_back(output.name);
        signature.outputs.push_back({});
    }
    partition.calls.push_back(std::move(call));
    for (TensorInput &input : partition.kernels[0].algorithm.inputs) {
        input.meta.offset = 0;
    }
    for (TensorOutput &output : partition.kernels[0].algorithm.outputs) {
        output.meta.offset = 0;
    }
    return assemble_plan(target, device, signature, partition.kernels[0].algorithm, {}, partition, {&compiled, 1});
}

}  // namespace tilewright
