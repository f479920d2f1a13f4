#include "dsl/capture/eager_strides.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tilewright {
namespace {

bool less(const Extent &a, const Extent &b) { return a.is_constant() && b.is_constant() && a.value() < b.value(); }

/// Dimensions from the slowest to the fastest of a channels-last tensor: batch, places, channels.
std::vector<int> channels_last_order(int rank) {
    std::vector<int> order{0};
    for (int i = 2; i < rank; ++i) {
        order.push_back(i);
    }
    order.push_back(1);
    return order;
}

std::vector<Extent> strides_in_order(const std::vector<Extent> &sizes, const std::vector<int> &order) {
    std::vector<Extent> strides(sizes.size());
    Extent stride = 1;
    for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
        strides[*dimension] = stride;
        stride = stride * (sizes[*dimension].is_constant() && sizes[*dimension].value() == 0 ? Extent(1) : sizes[*dimension]);
    }
    return strides;
}

/// As c10::is_channels_last_strides_2d: what may as well be contiguous is not channels-last.
bool is_channels_last(const TensorMeta &meta) {
    const int rank = meta.rank();
    if ((rank != 4 && rank != 5) || meta.strides[1] == Extent(0)) {
        return false;
    }
    Extent least = 0;
    std::vector<int> order = channels_last_order(rank);
    std::reverse(order.begin(), order.end());
    for (int d : order) {
        const bool is_batch = d == 0;
        if (meta.sizes[d] == Extent(0) || less(meta.strides[d], least) || (is_batch && least == meta.strides[1])) {
            return false;
        }
        if (!meta.strides[d].is_constant() && !is_batch && !less(least, meta.strides[d]) && !(meta.strides[d] == least)) {
            return false;  // nothing is known of the order
        }
        least = meta.sizes[d] == Extent(1) ? meta.strides[d] : meta.strides[d] * meta.sizes[d];
    }
    return true;
}

const TensorMeta *meta_of(const Node *node) { return node ? std::get_if<TensorMeta>(&node->meta) : nullptr; }

/// "relu" of "aten.relu_.default": in-place operators keep strides as their functional forms do.
std::string base_name(const std::string &target) {
    if (target.rfind("aten.", 0) != 0) {
        return "";
    }
    std::string name = target.substr(5, target.find('.', 5) - 5);
    if (!name.empty() && name.back() == '_') {
        name.pop_back();
    }
    return name;
}

bool is_convolution(const std::string &name) {
    static const std::set<std::string> names = {"convolution",      "_convolution",     "conv2d",           "conv3d",
                                                "conv_transpose2d", "conv_transpose3d", "cudnn_convolution"};
    return names.count(name) > 0;
}

/// Operators whose result has the memory format of their first input.
bool keeps_format(const std::string &name) {
    static const std::set<std::string> names = {"batch_norm",
                                                "native_batch_norm",
                                                "_native_batch_norm_legit",
                                                "_native_batch_norm_legit_no_training",
                                                "cudnn_batch_norm",
                                                "max_pool2d",
                                                "avg_pool2d",
                                                "adaptive_avg_pool2d",
                                                "max_pool2d_with_indices",
                                                "upsample_nearest2d",
                                                "upsample_bilinear2d",
                                                "dropout",
                                                "alias",
                                                "detach"};
    return names.count(name) > 0;
}

/// Operators that TensorIterator lays out.
bool is_elementwise(const std::string &name) {
    static const std::set<std::string> names = {
        "abs",         "add",         "addcdiv",    "addcmul",    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil",
        "celu",        "clamp",       "clamp_max",  "clamp_min",  "clone",       "cos",         "div",        "elu",         "eq",
        "erf",         "exp",         "exp2",       "expm1",      "floor",       "fmod",        "ge",         "gelu",        "gt",
        "hardsigmoid", "hardswish",   "hardtanh",   "le",         "leaky_relu",  "lerp",        "log",        "log1p",       "log2",
        "logical_and", "logical_not", "logical_or", "lt",         "maximum",     "minimum",     "mish",       "mul",         "ne",
        "neg",         "pow",         "prelu",      "reciprocal", "relu",        "relu6",       "remainder",  "round",       "rsqrt",
        "rsub",        "selu",        "sigmoid",    "sign",       "silu",        "sin",         "softplus",   "sqrt",        "square",
        "sub",         "tanh",        "_to_copy",   "to",         "where"};
    return names.count(name) > 0;
}

class Corrector {
public:
    explicit Corrector(Graph &graph) : graph_(graph) {}

    void run() {
        for (const auto &node : graph_.nodes()) {
            if (node->opcode == Opcode::call_function && !node->inputs().empty()) {
                visit(*node);
            }
        }
    }

private:
    void visit(Node &node) {
        const std::string name = base_name(node.target);
        if (node.target == "getitem") {
            if (corrected_.count(node.inputs()[0]) && meta_of(&node)) {
                correct(node, strides_in_order(meta_of(&node)->sizes, channels_last_order(meta_of(&node)->rank())));
            }
        } else if (is_convolution(name)) {
            visit_convolution(node);
        } else if (!corrects_input(node)) {
            return;
        } else if (keeps_format(name)) {
            const TensorMeta *input = meta_of(node.inputs()[0]);
            if (input && is_channels_last(*input)) {
                correct_to_channels_last(node);
            }
        } else if (is_elementwise(name) && meta_of(&node) && meta_of(&node)->is_contiguous()) {
            std::vector<TensorMeta> inputs;
            for (const Node *input : node.inputs()) {
                if (const TensorMeta *meta = meta_of(input)) {
                    inputs.push_back(*meta);
                }
            }
            correct(node, elementwise_strides(inputs, meta_of(&node)->sizes));
        }
    }

    void visit_convolution(Node &node) {
        const auto input = node.find("input") ? meta_of(node.find("input")->node()) : nullptr,
                   weight = node.find("weight") ? meta_of(node.find("weight")->node()) : nullptr;
        const TensorMeta *result = meta_of(&node);
        const bool is_double = input && (input->dtype == DType::float64 || (weight && weight->dtype == DType::float64));  // not by cuDNN
        if (input && weight && result && !is_double && result->is_contiguous() && (is_channels_last(*input) || is_channels_last(*weight))) {
            correct(node, strides_in_order(result->sizes, channels_last_order(result->rank())));
        }
    }

    bool corrects_input(const Node &node) const {
        const std::vector<Node *> inputs = node.inputs();
        return std::any_of(inputs.begin(), inputs.end(), [&](Node *input) { return corrected_.count(input) > 0; });
    }
    void correct_to_channels_last(Node &node) {
        if (const TensorMeta *meta = meta_of(&node)) {
            if (meta->rank() == 4 || meta->rank() == 5) {
                correct(node, strides_in_order(meta->sizes, channels_last_order(meta->rank())));
            }
            return;
        }
        corrected_.insert(&node);  // several results: their getitems are corrected
    }
    void correct(Node &node, std::vector<Extent> strides) {
        TensorMeta meta = node.tensor();
        if (meta.strides != strides) {
            meta.strides = std::move(strides);
            node.meta = meta;
            corrected_.insert(&node);
        }
    }

    Graph &graph_;
    std::set<const Node *> corrected_;
};

}  // namespace

std::vector<Extent> elementwise_strides(const std::vector<TensorMeta> &inputs, const std::vector<Extent> &sizes) {
    const int rank = static_cast<int>(sizes.size());
    std::vector<int> order(rank);  // fastest first
    for (int i = 0; i < rank; ++i) {
        order[i] = rank - 1 - i;
    }
    // TensorIterator's comparison: the first input whose strides tell two dimensions apart decides; 0 where none does.
    const auto compare = [&](int a, int b) {
        for (const TensorMeta &input : inputs) {
            const auto stride = [&](int dimension) {
                const int own = dimension - (rank - input.rank());
                return own < 0 || (input.sizes[own] == Extent(1) && !(sizes[dimension] == Extent(1))) ? Extent(0) : input.strides[own];
            };
            const Extent first = stride(a), second = stride(b);
            if (first == Extent(0) || second == Extent(0)) {
                continue;
            }
            if (less(first, second)) {
                return -1;
            }
            if (less(second, first) || less(sizes[b], sizes[a])) {
                return 1;
            }
        }
        return 0;
    };
    for (int i = 1; i < rank; ++i) {
        int at = i;
        for (int before = i - 1; before >= 0; --before) {
            const int order_of_two = compare(order[before], order[at]);
            if (order_of_two > 0) {
                std::swap(order[before], order[at]);
                at = before;
            } else if (order_of_two < 0) {
                break;
            }
        }
    }
    return strides_in_order(sizes, {order.rbegin(), order.rend()});
}

void restore_eager_strides(Graph &graph) { Corrector(graph).run(); }

}  // namespace tilewright
