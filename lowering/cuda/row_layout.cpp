#include "lowering/cuda/row_layout.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"

namespace tilewright {
namespace {

constexpr std::int64_t access_bytes = 16;
constexpr std::int64_t largest_row_block = 1024;   // threads
constexpr std::int64_t loads_at_once = 4;          // of a thread: what a plain copy is fastest with
constexpr std::int64_t registers_for_rows = 96;    // of a thread's, for values of the row

void narrowest(const Algorithm &algorithm, const Stage &stage, std::set<std::string> &seen, std::int64_t &bytes) {
    if (!seen.insert(stage.name()).second) {
        return;
    }
    for (const Read &read : reads_of(stage)) {
        if (const TensorInput *input = read.from_input ? algorithm.find_input(read.producer) : nullptr) {
            if (input->meta.rank() > 0) {
                bytes = std::min<std::int64_t>(bytes, std::max<std::int64_t>(size_in_bytes(input->meta.dtype), 2));
            }
        } else if (const Stage *producer = algorithm.find_stage(read.producer)) {
            narrowest(algorithm, *producer, seen, bytes);
        }
    }
}

}  // namespace

std::int64_t vector_width(const Algorithm &algorithm, const Stage &stage, const Extent &length) {
    std::int64_t bytes = 8;
    std::set<std::string> seen;
    narrowest(algorithm, stage, seen, bytes);
    for (const TensorOutput &output : algorithm.outputs) {
        if (output.stage == stage.name()) {
            bytes = std::min<std::int64_t>(bytes, std::max<std::int64_t>(size_in_bytes(output.meta.dtype), 2));
        }
    }
    std::int64_t width = access_bytes / bytes;
    while (width > 1 && !(mod(length, Extent(width)) == Extent(0))) {
        width /= 2;
    }
    return width;
}

RowLayout row_layout(const Extent &length, std::int64_t vector, int kept, const SymbolRanges &symbols) {
    RowLayout layout;
    layout.vector = vector;
    if (!length.is_constant()) {
        layout.threads = length.bounds(symbols).max <= 1024 ? 128 : 256;
        layout.steps = 0;
        return layout;
    }
    const std::int64_t vectors = std::max<std::int64_t>((length.value() + vector - 1) / vector, 1);
    const std::int64_t most_steps = std::max<std::int64_t>(registers_for_rows / (vector * std::max(kept, 1)), 1);
    if (vectors <= 32 * std::min<std::int64_t>(most_steps, 4)) {  // a warp, or a part of one, for a row
        layout.threads = 1;
        while (layout.threads < 32 && layout.threads < vectors) {
            layout.threads *= 2;
        }
        layout.steps = (vectors + layout.threads - 1) / layout.threads;
        layout.rows_per_block = std::max<std::int64_t>(128 / layout.threads, 1);
        layout.in_registers = true;
        return layout;
    }
    // Few threads with several independent loads each: rows follow each other closely, and exchanges are short.
    const auto in_warps = [](std::int64_t n) { return (n + 31) / 32 * 32; };
    const std::int64_t wanted = std::min(loads_at_once, most_steps);
    layout.threads = std::min(in_warps((vectors + wanted - 1) / wanted), largest_row_block);
    layout.steps = (vectors + layout.threads - 1) / layout.threads;
    layout.in_registers = layout.steps <= most_steps;
    if (layout.in_registers) {
        return layout;
    }
    layout.threads = largest_row_block;
    layout.steps = (vectors + layout.threads - 1) / layout.threads;
    return layout;
}

RowLayout row_layout_of(const Extent &length, std::int64_t vector, std::int64_t threads, std::int64_t rows_per_block) {
    RowLayout layout;
    layout.vector = vector;
    layout.threads = threads;
    layout.rows_per_block = std::max<std::int64_t>(rows_per_block, 1);
    const std::int64_t vectors = std::max<std::int64_t>((length.value() + vector - 1) / vector, 1);
    layout.steps = (vectors + threads - 1) / threads;
    layout.in_registers = layout.steps * vector <= registers_for_rows;
    return layout;
}

}  // namespace tilewright
