// One translation for several operators that differ in how terms are combined.
#pragma once

#include "dsl/algorithm/combiner.h"
#include "lowering/translate/context.h"

namespace tilewright::translation {

/// `translate(context, node, combiner)` as an operator's translation.
template<typename Translate> Translation with(Translate translate, Combiner combiner) {
    return [=](TranslationContext &context, const Node &node) { translate(context, node, combiner); };
}

}  // namespace tilewright::translation
