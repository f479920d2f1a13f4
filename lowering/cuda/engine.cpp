#include "lowering/cuda/engine.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "dsl/error.h"
#include "dsl/schedule/builder.h"
#include "lowering/cuda/cudnn_attention.h"
#include "lowering/cuda/cudnn_convolution.h"
#include "lowering/cuda/matmul_engine.h"

namespace tilewright {

namespace {

using EngineAction = decltype(Step::action);

template<typename Action> std::optional<EngineAction> as_action(std::optional<Action> action, int proposal) {
    if (!action) {
        return std::nullopt;
    }
    action->algorithm = proposal - 1;
    return EngineAction(std::move(*action));
}

std::optional<EngineAction> match_engine(EngineLibrary library, int proposal, const Kernel &kernel, const GpuFacts &facts,
                                         std::string *why_not) {
    if (library == EngineLibrary::cublaslt) {
        return as_action(match_matmul(kernel, why_not), proposal);
    }
    // Attention has several reductions, a convolution one.
    const auto reductions = std::count_if(kernel.algorithm.stages.begin(), kernel.algorithm.stages.end(),
                                          [](const Stage &s) { return !s.reduction_extents.empty(); });
    return as_action(reductions == 1 ? match_cudnn_convolution(kernel, why_not) : match_cudnn_attention(kernel, facts, why_not), proposal);
}

struct EngineName {
    EngineLibrary library;
    int proposal;
};
/// Empty for a name that is none.
std::optional<EngineName> engine_name(const std::string &text) {
    for (const EngineLibrary library : engine_libraries) {
        const std::string head = name(library);
        if (text == head) {
            return EngineName{library, 1};
        }
        int proposal = 0;
        const char *end = text.data() + text.size();
        if (text.starts_with(head + ":") && std::from_chars(text.data() + head.size() + 1, end, proposal).ptr == end && proposal >= 1) {
            return EngineName{library, proposal};
        }
    }
    return std::nullopt;
}

}  // namespace

std::string name(EngineLibrary library) { return library == EngineLibrary::cublaslt ? "cublaslt" : "cudnn"; }

bool computes(EngineLibrary library, const Kernel &kernel, const GpuFacts &facts, std::string *why_not) {
    return match_engine(library, 1, kernel, facts, why_not).has_value();
}

Directives engine_schedule(EngineLibrary library, const Kernel &kernel, int proposal) {
    const auto reduces = [](const Stage &stage) { return !stage.reduction_extents.empty(); };
    const auto product = std::find_if(kernel.algorithm.stages.begin(), kernel.algorithm.stages.end(), reduces);
    internal_assert(product != kernel.algorithm.stages.end(), "kernel {} holds no product", kernel.name);
    ScheduleBuilder schedule;
    schedule[product->name()].engine(proposal == 1 ? name(library) : fmt::format("{}:{}", name(library), proposal));
    return std::move(schedule.directives);
}

const Directive *find_engine(const Directives &directives) {
    const auto found = std::find_if(directives.begin(), directives.end(), [](const Directive &d) { return d.name == "engine"; });
    return found == directives.end() ? nullptr : &*found;
}

CompiledKernel compile_engine(const Kernel &kernel, const Directive &engine, const GpuFacts &facts) {
    const SourceLocation &at = engine.location;
    const std::string where = at.line > 0 ? fmt::format("{}:{}:{}: ", at.file, at.line, at.column) : "";
    const std::string *text = engine.arguments.empty() ? nullptr : std::get_if<std::string>(&engine.arguments[0]);
    const std::optional<EngineName> named = text == nullptr ? std::nullopt : engine_name(*text);
    if (!named) {
        user_error(
            "{}{}: the engines are \"cublaslt\" and \"cudnn\", and \"cublaslt:3\" is the third way that one proposes; name one, or remove "
            "the directive",
            where, engine.to_string());
    }
    std::string why;
    std::optional<EngineAction> action = match_engine(named->library, named->proposal, kernel, facts, &why);
    if (!action) {
        user_error("{}{}: {} cannot compute kernel {}, because {}; remove the directive, or cut the kernel around it", where,
                   engine.to_string(), named->library == EngineLibrary::cublaslt ? "cuBLASLt" : "cuDNN", kernel.name, why);
    }
    CompiledKernel compiled;
    compiled.steps.push_back({kernel.name, {}, std::move(*action), {}, {}});
    return compiled;
}

}  // namespace tilewright
