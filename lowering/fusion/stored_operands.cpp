#include "lowering/fusion/stored_operands.h"

#include <algorithm>

#include "lowering/fusion/storage_layout.h"
#include "lowering/fusion/view_folding.h"

namespace tilewright {

namespace {

constexpr double fewest_readers = 32;  // terms that read an element: for fewer it is cheaper computed once more than written and read

class StoredNodeSearch {
public:
    StoredNodeSearch(StageGraph &graph, const Groups &groups, int group, const StoredTensors &stored)
        : graph_(graph), nodes_(groups.group(group).nodes), groups_(groups), stored_(stored) {}

    std::vector<int> run(const ChannelLayout *channels, const std::function<bool(const Algorithm &)> &multiplies) {
        const int product = only_product();
        std::vector<int> stored;
        if (product >= 0) {
            stored = operands_of(product);
            add_displaced(product, stored);
        }
        if (stored.empty() || multiplies(build_kernel(graph_, nodes_, stored_, false).algorithm)) {
            return {};
        }
        std::vector<int> maps;
        for (int node : stored) {
            if (graph_.node(node).is_virtual) {
                maps.push_back(node);
                graph_.set_virtual(node, false);
            }
            stored_[{node, 0}] = {{graph_.node(node).name(), storage_layout(graph_, channels, node, 0)}};
        }
        if (multiplies(build_kernel(graph_, with_operands(from_product_on(product, stored), stored), stored_, false).algorithm)) {
            return stored;
        }
        for (int map : maps) {
            graph_.set_virtual(map, true);
        }
        return {};
    }

private:
    bool is_inside(int node) const { return std::binary_search(nodes_.begin(), nodes_.end(), node); }

    int only_product() const {
        int product = -1;
        for (int node : nodes_) {
            const StageNode &stage = graph_.node(node);
            if (!stage.has_update()) {
                continue;
            }
            if (product >= 0 || (stage.form != Form::contraction && stage.form != Form::window)) {
                return -1;
            }
            product = node;
        }
        return product;
    }

    std::vector<int> operands_of(int product) const {
        std::vector<int> stored;
        const double terms = work(product);
        for (int producer : graph_.node(product).producers) {
            const StageNode &stage = graph_.node(producer);
            const bool is_own = (stage.is_virtual || stage.readers == std::vector<int>{product}) && stage.form == Form::pointwise &&
                                stage.stage->func.outputs() == 1;
            if (terms >= fewest_readers * work(producer) && is_own &&
                (stage.is_virtual ? !stage.is_output && !is_strided(producer) : is_inside(producer))) {
                stored.push_back(producer);
            }
        }
        return stored;
    }

    double work(int node) const {
        return typical_size(graph_, graph_.node(node).stage->extents) * typical_size(graph_, graph_.node(node).stage->reduction_extents);
    }

    /// Whether the map reads one stored tensor at places that strides express.
    bool is_strided(int map) const {
        const StageNode &stage = graph_.node(map);
        const std::vector<EffectiveRead> &reads = graph_.effective_reads(map);
        if (!stage.is_map || reads.size() != 1) {
            return reads.empty();
        }
        const auto stored = stored_.find({reads[0].producer, reads[0].tuple_index});
        if (reads[0].producer >= 0 && stored == stored_.end()) {
            return false;
        }
        const TensorMeta &meta = reads[0].producer >= 0 ? stored->second.front().meta : graph_.algorithm().inputs[reads[0].input].meta;
        return fold_view(meta, reads[0].indices, stage.axes, SamplePoints(stage.axes, graph_.algorithm().symbols)).has_value();
    }

    /// Stages after the product whose value others of the group read at another place than their own.
    void add_displaced(int product, std::vector<int> &stored) const {
        for (int node : from_product_on(product, {})) {
            const auto &readers = groups_.consumers(node);
            if (node != product && std::any_of(readers.begin(), readers.end(),
                                               [&](int reader) { return is_inside(reader) && !reads_in_place(reader, node); })) {
                stored.push_back(node);
            }
        }
    }
    bool reads_in_place(int reader, int producer) const {
        const std::vector<IndexAxis> &axes = graph_.node(reader).axes;
        for (const EffectiveRead &read : graph_.effective_reads(reader)) {
            for (std::size_t i = 0; read.producer == producer && i < read.indices.size(); ++i) {
                const auto *variable = read.indices[i].as<Halide::Internal::Variable>();
                if (read.indices.size() != axes.size() || !variable || variable->name != axes[i].name) {
                    return false;
                }
            }
        }
        return true;
    }

    /// The product and what follows it, as far as one of `ends`.
    std::vector<int> from_product_on(int product, const std::vector<int> &ends) const {
        std::vector<int> part;
        for (int node : nodes_) {
            const auto &producers = groups_.producers(node);
            const bool follows = std::any_of(producers.begin(), producers.end(), [&](int producer) {
                return std::find(part.begin(), part.end(), producer) != part.end() &&
                       std::find(ends.begin(), ends.end(), producer) == ends.end();
            });
            if (node == product || follows) {
                part.push_back(node);
            }
        }
        return part;
    }

    /// The part, and what it needs of the group beside `stored`.
    std::vector<int> with_operands(std::vector<int> part, const std::vector<int> &stored) const {
        const auto has = [](const std::vector<int> &list, int node) { return std::find(list.begin(), list.end(), node) != list.end(); };
        for (std::size_t i = 0; i < part.size(); ++i) {
            for (int producer : groups_.producers(part[i])) {
                if (is_inside(producer) && !has(stored, producer) && !has(part, producer)) {
                    part.push_back(producer);
                }
            }
        }
        std::sort(part.begin(), part.end());
        return part;
    }

    StageGraph &graph_;
    const std::vector<int> &nodes_;
    const Groups &groups_;
    StoredTensors stored_;
};

}  // namespace

std::vector<int> nodes_to_store(StageGraph &graph, const Groups &groups, int group, const StoredTensors &stored,
                                const ChannelLayout *channels, const std::function<bool(const Algorithm &)> &multiplies) {
    return StoredNodeSearch(graph, groups, group, stored).run(channels, multiplies);
}

}  // namespace tilewright
