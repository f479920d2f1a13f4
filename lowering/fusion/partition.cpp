#include <fmt/format.h>

#include <algorithm>

#include "dsl/error.h"
#include "lowering/fusion/build_kernel.h"
#include "lowering/fusion/fusion.h"
#include "lowering/fusion/groups.h"
#include "lowering/fusion/kernel_name.h"
#include "lowering/fusion/known_values.h"
#include "lowering/fusion/move_reshapes.h"
#include "lowering/fusion/repack_inputs.h"
#include "lowering/fusion/split_columns.h"
#include "lowering/fusion/storage_layout.h"
#include "lowering/fusion/stored_operands.h"

namespace tilewright {

namespace {

class Partitioner {
public:
    Partitioner(const Algorithm &algorithm, const FusionOptions &options)
        : split_(split_for(algorithm, options)),
          moved_(move_reshapes(split_.algorithm)),
          graph_(moved_.algorithm),
          namer_(graph_),
          options_(options) {
        if (options.channels_innermost) {
            channels_.emplace(graph_);
        }
        for (const GraphOutput &output : graph_.outputs()) {
            outputs_[{output.node, output.tuple_index}].push_back(output.tensor);
            taken_names_.insert(output.tensor.name);
        }
        for (const TensorInput &input : algorithm.inputs) {
            taken_names_.insert(input.name());
        }
        for (int node : graph_.real_nodes()) {
            for (const EffectiveRead &read : graph_.effective_reads(node)) {
                if (read.producer >= 0) {
                    read_elements_[read.producer].insert(read.tuple_index);
                }
            }
        }
    }

    Partition run() {
        Grouper grouper(graph_, options_, graph_.real_nodes());
        const Groups groups = grouper.run();
        for (int group : groups.alive()) {
            add_group(groups, group);
        }
        add_decisions(groups, grouper);
        add_view_decisions();
        return std::move(partition_);
    }

private:
    static SplitColumns split_for(const Algorithm &algorithm, const FusionOptions &options) {
        return options.split_columns && options.mode != FusionMode::none ? split_columns(algorithm) : SplitColumns{algorithm, {}};
    }

    void add_group(const Groups &groups, int group) {
        const std::vector<int> &nodes = groups.group(group).nodes;
        store(groups, nodes);
        BuiltKernel built = build_kernel(graph_, nodes, stored_, options_.strict);
        if (groups.group(group).content.streams && options_.can_stream && !options_.can_stream(built.algorithm)) {
            not_streamed_.insert(nodes.begin(), nodes.end());
            cut_group(nodes, built, {});
            return;
        }
        if (groups.group(group).content.finishes_rows() && !(options_.can_finish_rows && options_.can_finish_rows(built.algorithm))) {
            keep_rows_apart(nodes);
            return;
        }
        if (options_.multiplies) {
            const std::vector<int> apart =
                nodes_to_store(graph_, groups, group, stored_, channels_ ? &*channels_ : nullptr, options_.multiplies);
            if (!apart.empty()) {
                std::vector<int> with_maps = nodes;
                for (int node : apart) {
                    read_elements_[node].insert(0);  // a map had no readers of its own
                }
                with_maps.insert(with_maps.end(), apart.begin(), apart.end());
                std::sort(with_maps.begin(), with_maps.end());
                with_maps.erase(std::unique(with_maps.begin(), with_maps.end()), with_maps.end());
                cut_group_at(with_maps, {apart.begin(), apart.end()}, "stored, or the matrix unit would not multiply");
                return;
            }
        }
        const Hash hash = structural_hash(built.algorithm);
        const auto cut = options_.cuts.find(hash);
        if (cut != options_.cuts.end() && nodes.size() > 1) {
            cut_group(nodes, built, cut->second);
            return;
        }
        add_call(nodes, std::move(built), hash);
    }

    /// Groups the nodes anew, reductions apart from the product whose rows they run along.
    void keep_rows_apart(const std::vector<int> &nodes) {
        FusionOptions options = options_;
        options.can_finish_rows = nullptr;
        Grouper grouper(graph_, options, nodes);
        const Groups groups = grouper.run();
        for (int group : groups.alive()) {
            add_group(groups, group);
        }
        add_decisions(groups, grouper);
    }

    /// Groups the nodes anew with ends after the named stages.
    void cut_group(const std::vector<int> &nodes, const BuiltKernel &built, const std::vector<std::string> &after) {
        std::set<int> ends;
        for (std::size_t i = 0; i < built.nodes.size(); ++i) {
            if (std::find(after.begin(), after.end(), built.algorithm.stages[i].name()) != after.end()) {
                ends.insert(built.nodes[i]);
            }
        }
        cut_group_at(nodes, ends, options_.reason_of_cuts);
    }
    void cut_group_at(const std::vector<int> &nodes, const std::set<int> &ends, const std::string &reason) {
        FusionOptions options = options_;
        options.reason_of_cuts = reason;
        options.streaming = options.mixed = options.gating = options.rereads = false;
        options.can_finish_rows = nullptr;
        options.mode = options.mode == FusionMode::max ? FusionMode::search : options.mode;
        Grouper grouper(graph_, options, nodes, ends);
        const Groups groups = grouper.run();
        for (int group : groups.alive()) {
            store(groups, groups.group(group).nodes);
            BuiltKernel part = build_kernel(graph_, groups.group(group).nodes, stored_, options_.strict);
            const Hash hash = structural_hash(part.algorithm);
            add_call(groups.group(group).nodes, std::move(part), hash);
        }
        add_decisions(groups, grouper);
    }

    /// Gives memory to what the group's kernel stores.
    void store(const Groups &groups, const std::vector<int> &nodes) {
        for (int node : groups.stored_nodes(nodes)) {
            const StageNode &stage = graph_.node(node);
            for (int element = 0; element < stage.stage->func.outputs(); ++element) {
                const std::pair<int, int> key(node, element);
                if (stored_.count(key)) {
                    continue;
                }
                const auto output = outputs_.find(key);
                if (output != outputs_.end()) {
                    stored_[key] = output->second;
                }
                if (output != outputs_.end() ? wants_other_layout(node, output->second) : read_elements_[node].count(element) > 0) {
                    const TensorMeta meta = storage_layout(graph_, channels_ ? &*channels_ : nullptr, node, element);
                    const std::string name = intermediate_name(stage, element);
                    stored_[key].insert(stored_[key].begin(), {name, meta});  // the first is the one that is read
                    partition_.intermediates.push_back({name, meta});
                }
            }
        }
    }

    /// A convolution reads an output that lies otherwise: the value is stored a second time.
    bool wants_other_layout(int node, const std::vector<StoredTensor> &outputs) const {
        const std::vector<int> innermost =
            channels_ && channels_->is_multiplied(node) ? channels_->innermost_of_node(node) : std::vector<int>();
        return !innermost.empty() && !lies_innermost(outputs.front().meta, innermost.back());
    }

    /// As the whole algorithm calls the stage.
    std::string original_name(const StageNode &stage) const {
        const std::string own = stage.name();
        const auto moved = moved_.original_names.find(own);
        const std::string &name = moved == moved_.original_names.end() ? own : moved->second;
        const auto split = split_.original_names.find(name);
        return split == split_.original_names.end() ? name : split->second;
    }

    std::string intermediate_name(const StageNode &stage, int element) {
        std::string name = original_name(stage) + (stage.stage->func.outputs() == 1 ? "" : fmt::format(".{}", element));
        while (!taken_names_.insert(name).second) {
            name += "_value";
        }
        return name;
    }

    void add_call(const std::vector<int> &nodes, BuiltKernel built, Hash hash) {
        KernelCall call;
        call.inputs = std::move(built.inputs);
        call.input_offsets = std::move(built.input_offsets);
        call.outputs = std::move(built.outputs);
        call.index_sites = std::move(built.index_sites);
        call.place = place_name(graph_, nodes, ordinals_);
        for (int node : nodes) {
            const std::string name = original_name(graph_.node(node));
            if (std::find(call.stages.begin(), call.stages.end(), name) == call.stages.end()) {
                call.stages.push_back(name);  // once, however many pieces of it there are
            }
        }
        // The text says everything that the code depends on, the names included: kernels are equal where their texts are.
        const auto [known, is_new] = kernels_.emplace(print(built.algorithm), static_cast<int>(partition_.kernels.size()));
        if (is_new) {
            Kernel kernel;
            kernel.name = kernel_names_.unique(namer_.name(nodes));
            kernel.hash = hash;
            kernel.algorithm = std::move(built.algorithm);
            partition_.kernels.push_back(std::move(kernel));
        }
        call.kernel = known->second;
        partition_.calls.push_back(std::move(call));
    }

    void add_decisions(const Groups &groups, const Grouper &grouper) {
        for (const auto &[edge, reason] : grouper.reasons()) {
            if (!decided_.insert(edge).second) {
                continue;  // within a kernel that was taken apart, whose parts were decided on before
            }
            const bool fused = groups.group_of(edge.first) == groups.group_of(edge.second);
            const bool tried = !fused && not_streamed_.count(edge.first) != not_streamed_.count(edge.second);
            partition_.decisions.push_back(
                {original_name(graph_.node(edge.first)), original_name(graph_.node(edge.second)), fused,
                 reason + (tried ? ": decided while one streaming kernel was tried here, which cannot be made" : "")});
        }
    }

    void add_view_decisions() {
        std::set<std::string> moved;  // reshapes of our own making: nobody asks about them
        for (const auto &[flat, original] : moved_.original_names) {
            moved.insert(original);
        }
        for (const StageNode &node : graph_.nodes()) {
            for (int reader : node.readers) {
                if (node.is_virtual && !moved.count(node.name()) && original_name(node) != original_name(graph_.node(reader))) {
                    const char *reason =
                        node.is_map ? "an index map costs nothing where it is read" : "cheaper to compute where it is read than to store";
                    partition_.decisions.push_back({original_name(node), original_name(graph_.node(reader)), true, reason});
                }
            }
        }
    }

    const SplitColumns split_;
    const MovedReshapes moved_;
    StageGraph graph_;
    const KernelNamer namer_;
    const FusionOptions &options_;
    std::optional<ChannelLayout> channels_;
    Partition partition_;
    StoredTensors stored_;
    std::map<std::pair<int, int>, std::vector<StoredTensor>> outputs_;
    std::map<int, std::set<int>> read_elements_;
    std::set<std::string> taken_names_;
    std::unordered_map<std::string, int> kernels_;
    KernelNames kernel_names_;
    std::map<int, std::string> ordinals_;
    std::set<std::pair<int, int>> decided_;  ///< edges
    std::set<int> not_streamed_;             ///< nodes of groups that were to stream and cannot
};

}  // namespace

Partition partition(const Algorithm &whole, const FusionOptions &options) {
    const Algorithm algorithm = fold_known_values(whole);
    if (!options.channels_innermost) {
        return Partitioner(algorithm, options).run();
    }
    const RepackedAlgorithm repacked = repack_inputs(algorithm);
    Partition result = Partitioner(repacked.algorithm, options).run();
    add_copies(result, repacked);
    return result;
}

}  // namespace tilewright
