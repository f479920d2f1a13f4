#include "lowering/cuda/candidates.h"

#include <algorithm>

#include "lowering/cuda/lower.h"
#include "lowering/cuda/product_schedule.h"
#include "lowering/cuda/streaming_schedule.h"
#include "lowering/fusion/shape.h"

namespace tilewright {

std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts) {
    std::vector<Directives> candidates{default_cuda_schedule(kernel, facts)};
    const auto consider = [&](const ScheduleChoice &choice) {
        Directives directives = schedule_for(kernel, facts, choice);
        if (std::find(candidates.begin(), candidates.end(), directives) == candidates.end() && can_lower(kernel, directives, facts)) {
            candidates.push_back(std::move(directives));
        }
    };
    const KernelShape shape = kernel_shape(kernel.algorithm).shape;
    const bool multiplies = shape == KernelShape::contraction || shape == KernelShape::window;
    for (int i = 0; multiplies && i < 12; ++i) {
        consider({.product = i});
    }
    if (const auto product = match_matrix_product(kernel, facts)) {
        for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
            Directives directives = product_schedule(*product, tile);
            if (std::find(candidates.begin(), candidates.end(), directives) == candidates.end() && can_lower(kernel, directives, facts)) {
                candidates.push_back(std::move(directives));
            }
        }
        return candidates;
    }
    if (const auto form = match_streaming(kernel.algorithm, facts)) {
        constexpr std::size_t most = 24;  // the cost orders them well enough for the rest to lose
        for (const StreamTile &tile : stream_tiles(*form, kernel.algorithm, facts)) {
            Directives directives = streaming_schedule(*form, kernel.algorithm, tile);
            if (candidates.size() < most && std::find(candidates.begin(), candidates.end(), directives) == candidates.end() && can_lower(kernel, directives, facts)) {
                candidates.push_back(std::move(directives));
            }
        }
        return candidates;
    }
    if (multiplies) {
        consider({.product = -1});
        for (const std::int64_t blocks : {1, 2, 3, 4}) {
            consider({.min_blocks = blocks});
        }
        return candidates;
    }
    for (const std::int64_t threads : {64, 128, 256, 512, 1024}) {
        for (const std::int64_t rows : {1, 2, 4, 8}) {
            for (const std::int64_t steps : {1, 2, 4}) {
                if (threads * rows <= 1024) {
                    consider({.threads = threads, .steps = steps, .rows_per_block = rows});
                }
            }
        }
    }
    for (const std::int64_t vector : {1, 2, 4}) {
        consider({.vector = vector});
    }
    for (const std::int64_t parts : {1, 2, 4, 8, 16, 32, 64, 132, 264}) {
        consider({.parts = parts});
    }
    for (const std::int64_t blocks : {1, 2, 3, 4, 6, 8}) {
        consider({.min_blocks = blocks});
    }
    consider({.fuse_rows = false});
    return candidates;
}

}  // namespace tilewright
