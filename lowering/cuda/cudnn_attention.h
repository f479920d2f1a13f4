// Kernels that are attention, as cuDNN computes it.
#pragma once

#include <optional>
#include <string>

#include "lowering/fusion/kernel.h"
#include "lowering/tile_ir/gpu_facts.h"
#include "runtime/plan.h"

namespace tilewright {

/// softmax(scale * q kᵀ) v, perhaps with the triangle above the diagonal masked, that the whole kernel is: queries [batch, heads, rows,
/// depth], where several neighbouring heads may share keys and values. Buffers count the kernel's inputs, then its output. Else empty, with
/// the reason in words.
std::optional<GraphEngineStep> match_cudnn_attention(const Kernel &kernel, const GpuFacts &facts, std::string *why_not = nullptr);

}  // namespace tilewright
