#include "runtime/plan.h"

#include <algorithm>

#include "dsl/error.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

std::string_view name(PlanBuffer::Kind kind) {
    switch (kind) {
        case PlanBuffer::Kind::input:
            return "input";
        case PlanBuffer::Kind::weight:
            return "weight";
        case PlanBuffer::Kind::output:
            return "output";
        case PlanBuffer::Kind::intermediate:
            return "intermediate";
    }
    return "?";
}

std::string describe(const TensorMeta &view) {
    const bool shifted = view.offset != Extent(0);
    return view.to_string() + (shifted ? fmt::format(" at {}", view.offset.to_string()) : "");
}

std::string to_string(const StepArgument &argument) {
    struct Printer {
        std::string operator()(const BufferArgument &a) const {
            return fmt::format("{}%{}{}", a.written ? "out " : "", a.buffer, a.view ? " as " + describe(*a.view) : "");
        }
        std::string operator()(const ScalarArgument &a) const { return a.value.to_string(); }
        std::string operator()(const TensorMapArgument &a) const {
            return fmt::format("{}map(%{}, box [{}], swizzle {})", a.written ? "out " : "", a.buffer, fmt::join(a.box, ", "),
                               a.swizzle_bytes);
        }
        std::string operator()(const StatusArgument &) const { return "status"; }
        std::string operator()(const ScratchArgument &a) const {
            return fmt::format("scratch({} bytes, slot {}{})", a.bytes.to_string(), a.slot, a.zeroed ? ", zeroed" : "");
        }
    };
    return std::visit(Printer{}, argument);
}

std::string to_string(const std::vector<StepArgument> &arguments) {
    std::string text;
    for (const StepArgument &argument : arguments) {
        text += (text.empty() ? "" : ", ") + to_string(argument);
    }
    return text;
}

std::string to_string(const Step &step) {
    struct Printer {
        std::string operator()(const CpuStep &s) const { return fmt::format("code {} {}({})", s.code, s.function, to_string(s.arguments)); }
        std::string operator()(const LaunchStep &s) const {
            std::string text = fmt::format("code {} {}<<<[{}, {}, {}], [{}], {} B", s.code, s.function, s.grid[0].to_string(),
                                           s.grid[1].to_string(), s.grid[2].to_string(), fmt::join(s.block, ", "), s.dynamic_shared_bytes);
            if (s.cluster != std::array<int, 3>{1, 1, 1}) {
                text += fmt::format(", cluster [{}]", fmt::join(s.cluster, ", "));
            }
            return text + (s.cooperative ? ", cooperative" : "") + ">>>(" + to_string(s.arguments) + ")";
        }
        std::string operator()(const MatmulEngineStep &s) const {
            return fmt::format("cublaslt %{} = {}(%{}{} @ %{}{}{}) [{} x {} x {} x {}]", s.d, s.epilogue, s.a, s.transpose_a ? "^T" : "",
                               s.b, s.transpose_b ? "^T" : "", s.bias >= 0 ? fmt::format(" + %{}", s.bias) : "", s.batch.to_string(),
                               s.m.to_string(), s.n.to_string(), s.k.to_string());
        }
        std::string operator()(const GraphEngineStep &s) const {
            std::string text = s.operation == GraphEngineStep::Operation::convolution ? "convolution("
                               : s.causal                                             ? "causal_attention("
                                                                                      : "attention(";
            for (std::size_t i = 0; i + 1 < s.tensors.size(); i++) {
                text += fmt::format("{}%{}", i > 0 ? ", " : "", s.tensors[i].buffer);
            }
            return fmt::format("cudnn %{} = {})", s.tensors.back().buffer, text);
        }
    };
    return std::visit(Printer{}, step.action);
}

void verify_step(const Plan &plan, const Step &step) {
    const auto check_code = [&](int code, const std::string &function) {
        internal_assert(code >= 0 && code < static_cast<int>(plan.code.size()), "plan step \"{}\" names code {}", step.kernel, code);
        internal_assert(!function.empty(), "plan step \"{}\" names no function", step.kernel);
    };
    if (const auto *cpu = std::get_if<CpuStep>(&step.action)) {
        internal_assert(plan.target == TargetKind::cpu, "plan step \"{}\" is the CPU's in a plan for cuda", step.kernel);
        check_code(cpu->code, cpu->function);
    } else {
        internal_assert(plan.target == TargetKind::cuda, "plan step \"{}\" is a GPU's in a plan for the CPU", step.kernel);
        if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
            check_code(launch->code, launch->function);
        }
    }
    for (int buffer : buffers_of(step)) {
        internal_assert(buffer < static_cast<int>(plan.buffers.size()), "plan step \"{}\" names buffer {}", step.kernel, buffer);
    }
    for (int site : step.sites) {
        internal_assert(site >= 0 && site < static_cast<int>(plan.index_sites.size()), "plan step \"{}\" names index site {}", step.kernel,
                        site);
    }
}

void verify_buffers(const Plan &plan) {
    const int count = static_cast<int>(plan.buffers.size());
    for (int b = 0; b < count; ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        internal_assert(buffer.meta.sizes.size() == buffer.meta.strides.size(), "plan buffer {} has {} sizes and {} strides", b,
                        buffer.meta.sizes.size(), buffer.meta.strides.size());
        internal_assert(buffer.alias_of < count && buffer.write_back_to < count, "plan buffer {} names a buffer that is none", b);
        internal_assert(buffer.alias_of < 0 || plan.buffers[buffer.alias_of].alias_of < 0, "plan buffer {} is an alias of an alias", b);
        if (buffer.write_back_to >= 0) {
            const PlanBuffer::Kind target = plan.buffers[buffer.write_back_to].kind;
            internal_assert(target == PlanBuffer::Kind::input || target == PlanBuffer::Kind::weight,
                            "plan buffer {} is written back to buffer {}, which is neither input nor weight", b, buffer.write_back_to);
        }
        if (buffer.kind == PlanBuffer::Kind::weight) {
            internal_assert(buffer.index >= 0 && buffer.index < static_cast<int>(plan.inputs.size()), "plan buffer {} is weight {}", b,
                            buffer.index);
        }
    }
}

std::string to_string(const ExtentConditions &conditions) {
    std::string text;
    for (const ExtentCondition &condition : conditions) {
        text += fmt::format("{}{} {} {}", text.empty() ? "" : " and ", condition.extent.to_string(), condition.op, condition.value);
    }
    return text;
}

std::string guard(const Step &step) {
    std::string text = step.when.empty() ? "" : " when " + to_string(step.when);
    for (const ExtentConditions &conditions : step.unless) {
        text += " unless " + to_string(conditions);
    }
    return text;
}

}  // namespace

bool ExtentCondition::holds(const SymbolValues &symbols) const {
    const std::int64_t actual = extent.evaluate(symbols);
    if (op == "<=") {
        return actual <= value;
    }
    if (op == "<") {
        return actual < value;
    }
    if (op == ">=") {
        return actual >= value;
    }
    if (op == ">") {
        return actual > value;
    }
    internal_assert(op == "==", "a plan compares by \"{}\"", op);
    return actual == value;
}

bool Step::runs_for(const SymbolValues &symbols) const {
    const auto hold = [&](const ExtentConditions &conditions) {
        return std::all_of(conditions.begin(), conditions.end(), [&](const ExtentCondition &c) { return c.holds(symbols); });
    };
    return hold(when) && std::none_of(unless.begin(), unless.end(), hold);
}

std::string print(const Plan &plan) {
    std::string text = fmt::format("plan {} \"{}\"\n", plan.target == TargetKind::cpu ? "cpu" : "cuda", plan.device);
    for (const auto &[symbol, range] : plan.symbols) {
        text += fmt::format("  symbol {} in [{}, {}]\n", symbol, range.min, range.max);
    }
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        const PlanBuffer &buffer = plan.buffers[b];
        text += fmt::format("  %{} {} \"{}\" {}", b, name(buffer.kind), buffer.name, buffer.meta.to_string());
        text += buffer.alias_of >= 0 ? fmt::format(" = %{}", buffer.alias_of) : "";
        text += buffer.write_back_to >= 0 ? fmt::format(" -> %{}", buffer.write_back_to) : "";
        text += '\n';
    }
    for (std::size_t c = 0; c < plan.code.size(); ++c) {
        const CodeObject &code = plan.code[c];
        text += fmt::format("  code {} \"{}\" {} bytes", c, code.name, code.image.size());
        text += plan.target == TargetKind::cuda
                    ? fmt::format(", {} registers, {} B spilled, {} B shared\n", code.registers, code.spill_stores, code.shared_bytes)
                    : "\n";
    }
    const ConstantSteps constant = find_constant_steps(plan);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        text += fmt::format("  step {} \"{}\"{}: {}\n", s, plan.steps[s].kernel, constant.steps[s] ? " (once)" : guard(plan.steps[s]),
                            to_string(plan.steps[s]));
    }
    const bool fixed = plan.symbols.empty();
    const MemoryLayout layout = fixed ? plan_memory(plan, {}, constant.buffers) : MemoryLayout{};
    if (fixed) {
        text += fmt::format("  arena {} bytes\n", layout.arena_bytes);
    }
    text += fmt::format("  inputs [{}] outputs [{}]\n", fmt::join(plan.user_inputs, ", "), fmt::join(plan.user_outputs, ", "));
    return text;
}

void verify(const Plan &plan) {
    verify_buffers(plan);
    std::vector<bool> defined(plan.buffers.size(), false);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        defined[b] = plan.buffers[b].kind == PlanBuffer::Kind::input || plan.buffers[b].kind == PlanBuffer::Kind::weight;
    }
    for (const Step &step : plan.steps) {
        verify_step(plan, step);
        const std::vector<int> written = buffers_written_by(step);
        for (int buffer : written) {
            internal_assert(plan.buffers[buffer].kind != PlanBuffer::Kind::input && plan.buffers[buffer].kind != PlanBuffer::Kind::weight,
                            "plan step \"{}\" writes buffer {}, which is an input or a weight", step.kernel, buffer);
            defined[buffer] = true;
        }
        for (int buffer : buffers_of(step)) {
            const int owner = plan.buffers[buffer].alias_of;
            internal_assert(defined[owner < 0 ? buffer : owner], "plan step \"{}\" reads buffer {} before it is written", step.kernel,
                            buffer);
        }
    }
    const auto check_list = [&](const std::vector<int> &list, PlanBuffer::Kind kind) {
        for (int buffer : list) {
            internal_assert(buffer >= 0 && buffer < static_cast<int>(plan.buffers.size()) && plan.buffers[buffer].kind == kind,
                            "the plan lists buffer {} as {}", buffer, name(kind));
        }
    };
    check_list(plan.user_inputs, PlanBuffer::Kind::input);
    check_list(plan.user_outputs, PlanBuffer::Kind::output);
    for (int buffer : plan.user_outputs) {
        const int owner = plan.buffers[buffer].alias_of;
        internal_assert(defined[owner < 0 ? buffer : owner], "nothing writes the plan's output buffer {}", buffer);
    }
}

}  // namespace tilewright
