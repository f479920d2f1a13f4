#include "lowering/fusion/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "lowering/fusion/build_kernel.h"

namespace tilewright {

namespace {

constexpr std::size_t most_words = 4;

/// How much an operator says about its kernel: updates most, then functions, arithmetic, and views least.
int weight(const StageNode &node) {
    return node.has_update() ? 4 : node.is_expensive ? 3 : node.form == Form::gather ? 3 : node.is_view || node.cost == 0 ? 0 : 1;
}

}  // namespace

std::string kernel_name(const StageGraph &graph, const std::vector<int> &nodes) {
    struct Word {
        std::string text;
        int weight;
    };
    std::vector<Word> words;
    for (int node : nodes) {
        Word word{short_operator_name(graph.node(node).stage->op), weight(graph.node(node))};
        const bool known = std::any_of(words.begin(), words.end(), [&](const Word &other) { return other.text == word.text; });
        if (!known) {
            words.push_back(std::move(word));
        }
    }
    for (int least = 0; words.size() > 1 && least < 4; ++least) {
        for (std::size_t i = words.size(); i-- > 0 && words.size() > 1;) {
            if (words[i].weight == least && (least == 0 || words.size() > most_words)) {
                words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }
    words.resize(std::min(words.size(), most_words));
    std::string name;
    for (const Word &word : words) {
        name += (name.empty() ? "" : "_") + word.text;
    }
    return name;
}

std::string KernelNames::unique(const std::string &base) {
    for (;;) {
        const int count = ++counts_[base];
        const std::string name = count == 1 ? base : fmt::format("{}_{}", base, count);
        if (count == 1 || !counts_.count(name)) {
            counts_.emplace(name, 1);
            return name;
        }
    }
}

std::string place_name(const StageGraph &graph, const std::vector<int> &nodes, std::map<int, std::string> &ordinals) {
    if (ordinals.empty()) {
        std::map<std::string, int> counts;
        for (int node : graph.real_nodes()) {
            const std::string op = short_operator_name(graph.node(node).stage->op);
            ordinals[node] = fmt::format("{}#{}", op, counts[op]++);
        }
    }
    int anchor = nodes.back();
    for (int node : nodes) {
        anchor = graph.node(node).has_update() ? node : anchor;
    }
    return ordinals.at(anchor);
}

}  // namespace tilewright
