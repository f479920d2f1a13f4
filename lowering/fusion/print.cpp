#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "lowering/fusion/fusion.h"
#include "lowering/fusion/shape.h"

namespace tilewright {

namespace {

std::string indented(const std::string &text) {
    std::string result;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        result += "  " + text.substr(begin, end - begin) + "\n";
        begin = end + 1;
    }
    return result;
}

/// The kernel that computes a stage; of one that no kernel stores (a view), the kernel of its first reader.
class KernelOfStage {
public:
    explicit KernelOfStage(const Partition &partition) {
        for (const KernelCall &call : partition.calls) {
            for (const std::string &stage : call.stages) {
                kernels_.emplace(stage, partition.kernels[static_cast<std::size_t>(call.kernel)].name);
            }
        }
        for (const FusionDecision &decision : partition.decisions) {
            if (decision.fused) {
                readers_.emplace(decision.producer, decision.consumer);
            }
        }
    }

    std::string name(const std::string &stage) const {
        std::set<std::string> seen;
        for (std::string at = stage; seen.insert(at).second;) {
            if (const auto kernel = kernels_.find(at); kernel != kernels_.end()) {
                return kernel->second;
            }
            const auto reader = readers_.find(at);
            at = reader == readers_.end() ? at : reader->second;
        }
        return stage;
    }

private:
    std::map<std::string, std::string> kernels_, readers_;  ///< by stage
};

}  // namespace

std::string print(const Partition &partition) {
    std::vector<int> calls(partition.kernels.size(), 0);
    for (const KernelCall &call : partition.calls) {
        ++calls[call.kernel];
    }
    std::string text = fmt::format("{} kernels, {} calls, {} intermediates\n", partition.kernels.size(), partition.calls.size(),
                                   partition.intermediates.size());
    for (std::size_t i = 0; i < partition.kernels.size(); ++i) {
        const Kernel &kernel = partition.kernels[i];
        text += fmt::format("\nkernel {}  algorithm {}  # {}, {} call{}\n", kernel.name, kernel.hash.to_string(),
                            name(kernel_shape(kernel.algorithm).shape), calls[i], calls[i] == 1 ? "" : "s");
        text += indented(print(kernel.algorithm));
    }
    text += "\n";
    for (const KernelCall &call : partition.calls) {
        std::string inputs;
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            const bool is_shifted = i < call.input_offsets.size() && !(call.input_offsets[i] == Extent(0));
            inputs += (i ? ", " : "") + call.inputs[i] + (is_shifted ? fmt::format("[{}:]", call.input_offsets[i].to_string()) : "");
        }
        text += fmt::format("call {}({}) -> {}  # {}\n", partition.kernels[call.kernel].name, inputs, fmt::join(call.outputs, ", "),
                            call.place);
    }
    for (const Intermediate &intermediate : partition.intermediates) {
        text += fmt::format("intermediate {} {}\n", intermediate.name, intermediate.meta.to_string());
    }
    return text;
}

std::string print_decisions(const Partition &partition) {
    std::string text;
    for (const FusionDecision &decision : partition.decisions) {
        text +=
            fmt::format("{} -> {}: {}, {}\n", decision.producer, decision.consumer, decision.fused ? "fused" : "apart", decision.reason);
    }
    return text;
}

std::string print_decisions_by_kernel(const Partition &partition) {
    const KernelOfStage kernels(partition);
    struct Line {
        std::string text, first;
        int edges = 0;
    };
    std::vector<Line> apart, fused;
    for (const FusionDecision &decision : partition.decisions) {
        const std::string consumer = kernels.name(decision.consumer);
        std::string text = decision.fused ? fmt::format("{}: {}", consumer, decision.reason)
                                          : fmt::format("{} -> {}: {}", kernels.name(decision.producer), consumer, decision.reason);
        std::vector<Line> &lines = decision.fused ? fused : apart;
        auto line = std::find_if(lines.begin(), lines.end(), [&](const Line &l) { return l.text == text; });
        if (line == lines.end()) {
            line = lines.insert(lines.end(), {std::move(text), fmt::format("{} -> {}", decision.producer, decision.consumer), 0});
        }
        ++line->edges;
    }
    std::string text;
    for (const auto &[title, lines] : {std::pair{"apart", &apart}, {"fused", &fused}}) {
        for (const Line &line : *lines) {
            text += fmt::format("{}  {} ({}{})\n", title, line.text, line.first,
                                line.edges > 1 ? fmt::format(" and {} more", line.edges - 1) : "");
        }
    }
    return text;
}

}  // namespace tilewright
