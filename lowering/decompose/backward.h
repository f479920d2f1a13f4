// Rules of the operators that autograd puts into the graph of a training step.
#pragma once

#include "lowering/decompose/rules.h"

namespace tilewright {

void add_pointwise_backward_rules(RuleTable &table);  ///< activations, dropout, losses
void add_layer_backward_rules(RuleTable &table);      ///< norms, tables, views, pools, convolutions, attention

}  // namespace tilewright
