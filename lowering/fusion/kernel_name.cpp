#include "lowering/fusion/kernel_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tilewright {

namespace {

constexpr std::size_t most_words = 3;

/// How much an operator says about its kernel: updates most, then functions, arithmetic, and views least.
int weight(const StageNode &node) {
    return node.has_update() ? 4 : node.is_expensive ? 3 : node.form == Form::gather ? 3 : node.is_view || node.cost == 0 ? 0 : 1;
}

/// "layer_norm" of "layer_norm_1".
std::string without_number(const std::string &name) {
    const std::size_t last = name.find_last_not_of("0123456789");
    return last != std::string::npos && last + 1 < name.size() && last > 0 && name[last] == '_' ? name.substr(0, last) : name;
}

}  // namespace

std::string program_node(const StageNode &node) {
    std::string name = node.name();
    const std::string moved = "_flat";
    if (name.size() > moved.size() && name.ends_with(moved)) {
        name.resize(name.size() - moved.size());
    }
    const std::size_t part = name.rfind("_" + short_operator_name(node.stage->op));
    return part == std::string::npos || part == 0 ? name : name.substr(0, part);
}

KernelNamer::KernelNamer(const StageGraph &graph) : graph_(graph) {
    for (int node : graph.real_nodes()) {
        ++stages_of_[program_node(graph.node(node))];
    }
}

std::string KernelNamer::name(const std::vector<int> &nodes) const {
    struct Word {
        std::string node;
        std::string text;
        std::string part;  ///< the core operator that says most
        int weight = 0, part_weight = -1, stages = 0;
    };
    std::vector<Word> words;
    for (int index : nodes) {
        const StageNode &node = graph_.node(index);
        const std::string origin = program_node(node);
        auto word = std::find_if(words.begin(), words.end(), [&](const Word &other) { return other.node == origin; });
        if (word == words.end()) {
            words.push_back({origin, without_number(origin), "", 0, -1, 0});
            word = words.end() - 1;
        }
        word->weight = std::max(word->weight, weight(node));
        ++word->stages;
        if (weight(node) > word->part_weight) {
            word->part = short_operator_name(node.stage->op);
            word->part_weight = weight(node);
        }
    }
    for (Word &word : words) {
        const auto whole = stages_of_.find(word.node);  // none for a map that became a stage of its own
        const bool is_partial = whole != stages_of_.end() && word.stages < whole->second && word.part_weight > 1 && word.text != word.part;
        word.text += is_partial ? "_" + word.part : "";
    }
    std::vector<Word> distinct;
    for (const Word &word : words) {
        if (std::none_of(distinct.begin(), distinct.end(), [&](const Word &other) { return other.text == word.text; })) {
            distinct.push_back(word);
        }
    }
    for (int least = 0; distinct.size() > 1 && least < 4; ++least) {
        for (std::size_t i = distinct.size(); i-- > 0 && distinct.size() > 1;) {
            if (distinct[i].weight == least && (least == 0 || distinct.size() > most_words)) {
                distinct.erase(distinct.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }
    distinct.resize(std::min(distinct.size(), most_words));
    std::string name;
    for (const Word &word : distinct) {
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
        const auto number = [&](int node) {
            const std::string op = short_operator_name(graph.node(node).stage->op);
            ordinals[node] = fmt::format("{}#{}", op, counts[op]++);
        };
        const std::vector<int> real = graph.real_nodes();
        std::for_each(real.begin(), real.end(), number);
        // Maps may become stages of their own later.
        for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node) {
            if (!ordinals.count(node)) {
                number(node);
            }
        }
    }
    int anchor = nodes.back();
    for (int node : nodes) {
        anchor = graph.node(node).has_update() ? node : anchor;
    }
    return ordinals.at(anchor);
}

std::string short_operator_name(const std::string &op) {
    std::string name = op;
    const std::size_t first = name.find('.');
    if (first != std::string::npos) {
        const std::size_t second = name.find('.', first + 1);
        name = name.substr(first + 1, second == std::string::npos ? std::string::npos : second - first - 1);
    }
    if (name == "convert_element_type") {
        name = "convert";
    } else if (name == "broadcast_in_dim") {
        name = "broadcast";
    }
    for (char &c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    name.erase(0, std::min(name.find_first_not_of('_'), name.size()));
    while (!name.empty() && name.back() == '_') {
        name.pop_back();
    }
    return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ? "stage" + name : name;
}

}  // namespace tilewright
