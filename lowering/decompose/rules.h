// The table of decomposition rules, filled family by family.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/decompose/arguments.h"
#include "lowering/decompose/builder.h"

namespace tilewright {

using Rule = std::function<Results(Builder &, const Arguments &)>;

class RuleTable {
public:
    void add(std::string target, Rule rule) { rules_[std::move(target)] = std::move(rule); }
    void add(std::initializer_list<const char *> targets, const Rule &rule) {
        for (const char *target : targets) {
            rules_[target] = rule;
        }
    }
    /// The operator can never be compiled; `reason` completes "… is refused: ".
    void refuse(std::initializer_list<const char *> targets, std::string reason) {
        for (const char *target : targets) {
            reasons_[target] = reason;
        }
    }
    const Rule *find(const std::string &target) const {
        auto found = rules_.find(target);
        return found == rules_.end() ? nullptr : &found->second;
    }
    const std::string *reason(const std::string &target) const {
        auto found = reasons_.find(target);
        return found == reasons_.end() ? nullptr : &found->second;
    }
    std::vector<std::string> targets() const;  ///< sorted

private:
    std::unordered_map<std::string, Rule> rules_;
    std::unordered_map<std::string, std::string> reasons_;
};

/// Built-in rules, and those of register_decomposition().
RuleTable &rule_table();

/// The part of a dimension that slice and slice_scatter name; `length` is the number of elements where the program says it.
struct SliceRange {
    Extent start, end, step;
};
SliceRange slice_range(const Arguments &arguments, const Extent &size, std::optional<Extent> length);

void add_pointwise_rules(RuleTable &table);
void add_comparison_rules(RuleTable &table);
void add_activation_rules(RuleTable &table);
void add_conversion_rules(RuleTable &table);
void add_creation_rules(RuleTable &table);
void add_view_rules(RuleTable &table);
void add_shape_rules(RuleTable &table);
void add_scatter_view_rules(RuleTable &table);
void add_reduction_rules(RuleTable &table);
void add_extremum_rules(RuleTable &table);
void add_scan_rules(RuleTable &table);
void add_sort_rules(RuleTable &table);
void add_matmul_rules(RuleTable &table);
void add_quantized_rules(RuleTable &table);
void add_einsum_rules(RuleTable &table);
void add_convolution_rules(RuleTable &table);
void add_pool_rules(RuleTable &table);
void add_resize_rules(RuleTable &table);
void add_grid_rules(RuleTable &table);
void add_pad_rules(RuleTable &table);
void add_window_rules(RuleTable &table);
void add_norm_rules(RuleTable &table);
void add_softmax_rules(RuleTable &table);
void add_loss_rules(RuleTable &table);
void add_index_rules(RuleTable &table);
void add_scatter_rules(RuleTable &table);
void add_embedding_rules(RuleTable &table);
void add_attention_rules(RuleTable &table);
void add_rnn_rules(RuleTable &table);
void add_refusals(RuleTable &table);

}  // namespace tilewright
