#include <algorithm>

#include "dsl/error.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/cuda/launch_parameters.h"
#include "lowering/cuda/lower.h"

namespace tilewright {
namespace {

std::string combiner_value_type(const tile::CombinerDefinition &d) {
    return d.types.size() > 1 ? d.name + "_value" : cuda_type(d.types[0]);
}

/// Prints an expression of a combiner; shared parts once.
class CombinerPrinter {
public:
    CombinerPrinter(const tile::CombinerDefinition &d, std::string &out) : out_(out) {
        for (std::size_t i = 0; i < d.types.size(); ++i) {
            const std::string field = d.types.size() > 1 ? "._" + std::to_string(i) : "";
            names_[d.left[i]] = "a" + field;
            names_[d.right[i]] = "b" + field;
        }
    }
    std::string print(const Halide::Expr &e) {
        if (const auto *v = e.as<Halide::Internal::Variable>()) {
            return names_.at(v->name);
        }
        if (e.as<Halide::Internal::IntImm>() || e.as<Halide::Internal::UIntImm>() || e.as<Halide::Internal::FloatImm>()) {
            return cuda_literal(e);
        }
        if (auto found = done_.find(e); found != done_.end()) {
            return found->second;
        }
        std::vector<std::string> operands;
        for (const Halide::Expr &operand : operands_of(e)) {
            operands.push_back(print(operand));
        }
        const std::string name = "v" + std::to_string(done_.size());
        out_ += fmt::format("        const {} {} = {};\n", cuda_type(e.type()), name, without_parentheses(cuda_operation(e, operands, {})));
        done_[e] = name;
        return name;
    }

private:
    std::string &out_;
    std::map<std::string, std::string> names_;
    std::map<Halide::Expr, std::string, Halide::Internal::IRGraphDeepCompare> done_;
};

bool is_symmetric(Combiner kind) {
    switch (kind) {
        case Combiner::sum:
        case Combiner::product:
        case Combiner::minimum:
        case Combiner::maximum:
        case Combiner::logical_and:
        case Combiner::logical_or:
        case Combiner::arg_minimum:
        case Combiner::arg_maximum:
            return true;
        default:
            return false;
    }
}

std::string emit_launch(const tile::Launch &launch, const SymbolRanges &symbols, int inputs, std::set<std::string> &printed,
                        LaunchStep &step) {
    LaunchParameters parameters = launch_parameters(launch, inputs);
    step.arguments = std::move(parameters.arguments);
    step.code = 0;
    step.function = launch.name;
    step.grid = {launch.blocks, 1, 1};
    step.block = {launch.threads, 1, 1};
    step.cluster = {launch.cluster, 1, 1};
    step.dynamic_shared_bytes = launch.shared_bytes;
    std::string out;
    for (const tile::CombinerDefinition &combiner : launch.combiners) {
        out += printed.insert(combiner.name).second ? emit_combiner(combiner) : "";
    }
    std::string bounds = std::to_string(launch.threads);
    if (launch.min_blocks_per_multiprocessor > 0) {
        bounds += ", " + std::to_string(launch.min_blocks_per_multiprocessor);
    }
    for (const tile::Axis &axis : launch.axes) {
        std::string leaves;
        for (const tile::Leaf &leaf : axis.leaves) {
            leaves += fmt::format("{}{} {}", leaves.empty() ? "" : " x ", name(leaf.level), leaf.extent.to_string());
        }
        out += fmt::format("// {} < {}: {}\n", axis.name, axis.extent.to_string(), leaves);
    }
    out += fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}) {}(\n{}) {{\n",
                       launch.cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", launch.cluster) : "", bounds, launch.name,
                       parameters.declarations);
    out += "    tw::begin_launch();\n" + BodyEmitter(launch, symbols).run() + "}\n";
    return out;
}

}  // namespace

std::string emit_combiner(const tile::CombinerDefinition &d) {
    if (d.result.empty()) {
        return "";
    }
    std::string out;
    const std::string type = combiner_value_type(d);
    if (d.types.size() > 1) {
        out += "struct " + type + " {\n";
        for (std::size_t i = 0; i < d.types.size(); ++i) {
            out += fmt::format("    {} _{};\n", cuda_type(d.types[i]), i);
        }
        out += "};\n";
    }
    std::string body, list;
    CombinerPrinter printer(d, body);
    for (const Halide::Expr &e : d.result) {
        list += (list.empty() ? "" : ", ") + printer.print(e);
    }
    const std::string parameter = d.types.size() > 1 ? "const " + type + " &" : type + " ";
    out += fmt::format("struct {} {{  // {}\n    static constexpr bool symmetric = {};\n", d.name, name(d.kind), is_symmetric(d.kind));
    out += fmt::format("    __device__ __forceinline__ {} operator()({}a, {}b) const {{\n{}        return {};\n    }}\n}};\n\n", type,
                       parameter, parameter, body, d.types.size() > 1 ? type + "{" + list + "}" : list);
    return out;
}

CudaKernelCode emit_cuda(const tile::Program &program) {
    CudaKernelCode code;
    code.source = "// " + program.kernel + "\n#include \"tilewright_device.h\"\n\n";
    std::set<std::string> combiners;  // a finishing launch shares its combiner with the one before
    for (const tile::Launch &launch : program.launches) {
        LaunchStep step;
        const std::string text = emit_launch(launch, program.symbols, program.inputs, combiners, step);
        code.source += text + "\n";
        code.launches.push_back(std::move(step));
    }
    return code;
}

CudaKernelCode lower_cuda(const Kernel &kernel, const Directives &directives, const GpuFacts &facts) {
    return emit_cuda(lower_to_tiles(kernel, directives, facts));
}

}  // namespace tilewright
