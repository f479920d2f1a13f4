#include "lowering/decompose/rules.h"

#include <algorithm>

#include "lowering/decompose/backward.h"
#include "lowering/decompose/decompose.h"

namespace tilewright {

RuleTable &rule_table() {
    static RuleTable table = [] {
        RuleTable built_in;
        for (auto *family :
             {add_pointwise_rules,      add_comparison_rules, add_activation_rules,   add_conversion_rules, add_creation_rules,
              add_view_rules,           add_shape_rules,      add_scatter_view_rules, add_reduction_rules,  add_extremum_rules,
              add_scan_rules,           add_sort_rules,       add_matmul_rules,       add_quantized_rules,  add_einsum_rules,
              add_convolution_rules,    add_pool_rules,       add_resize_rules,       add_grid_rules,       add_pad_rules,
              add_window_rules,         add_norm_rules,       add_softmax_rules,      add_loss_rules,       add_index_rules,
              add_scatter_rules,        add_embedding_rules,  add_attention_rules,    add_rnn_rules,        add_pointwise_backward_rules,
              add_layer_backward_rules, add_refusals}) {
            family(built_in);
        }
        return built_in;
    }();
    return table;
}

std::vector<std::string> RuleTable::targets() const {
    std::vector<std::string> names;
    for (const auto &[name, rule] : rules_) {
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

void register_decomposition(const std::string &target, Decomposition rule) {
    rule_table().add(target, [rule = std::move(rule)](Builder &b, const Arguments &a) { return Results(rule(b, a.node())); });
}

}  // namespace tilewright
