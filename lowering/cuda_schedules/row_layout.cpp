#include "lowering/cuda_schedules/row_layout.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"

namespace tilewright {
namespace {

constexpr std::int64_t access_bytes = 16;
constexpr std::int64_t largest_row_block = 1024;  // threads
constexpr std::int64_t longest_own_block = 512;   // likewise before several blocks share a row
constexpr std::int64_t shared_row_block = 256;    // likewise where blocks of a cluster share a row
constexpr std::int64_t most_shared_steps = 8;     // of a thread there: values of the row are computed again, not kept
constexpr std::int64_t few_threads =
    128;  // of a block that shares a row of one tensor: more blocks a multiprocessor, longer parts of a thread
constexpr std::int64_t most_steps_of_few = 16;
constexpr std::int64_t most_narrow_steps = 12;   // of a warp whose accesses are narrow
constexpr std::int64_t least_run = 32;           // neighbouring elements that a row's threads read at once
constexpr std::int64_t most_packed_bytes = 400;  // of a row as it lies in memory, in a thread with 128 registers
constexpr std::int64_t registers_for_rows = 96;  // of a thread's, for values of the row

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

/// Threads of a block that has a part of a row: with no vector left over where that can be, few rather than many, so that what each thread
/// does once is done for many elements.
std::int64_t shared_threads(std::int64_t vectors, std::int64_t least_steps, bool reads_one) {
    if (reads_one && vectors % few_threads == 0 && vectors / few_threads > most_shared_steps &&
        vectors / few_threads <= most_steps_of_few) {
        return few_threads;
    }
    for (const std::int64_t most : {shared_row_block, longest_own_block}) {
        for (std::int64_t steps = most_shared_steps; steps >= least_steps; --steps) {
            const std::int64_t threads = vectors / steps;
            if (vectors % steps == 0 && threads % 32 == 0 && threads <= most) {
                return threads;
            }
        }
    }
    // Whole vectors for every thread matter more than short parts: edges cost each of them a condition.
    for (std::int64_t steps = most_steps_of_few; reads_one && steps > most_shared_steps; --steps) {
        const std::int64_t threads = vectors / steps;
        if (vectors % steps == 0 && threads % 32 == 0 && threads <= longest_own_block) {
            return threads;
        }
    }
    const std::int64_t steps = std::clamp((vectors + shared_row_block - 1) / shared_row_block, least_steps, most_shared_steps);
    return std::min(((vectors + steps - 1) / steps + 31) / 32 * 32, largest_row_block);
}

/// Parts that are whole warps long may leave nothing of the row for the last blocks.
void drop_idle_blocks(RowLayout &layout, std::int64_t vectors) {
    const std::int64_t part = layout.threads * layout.steps;
    layout.blocks = std::min(layout.blocks, (vectors + part - 1) / part);
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

std::int64_t aligned_vector(const ScheduleDraft &draft, const Stage &stage, const Extent &length, std::int64_t shortest) {
    if (draft.choice.vector > 0 || draft.choice.align == 1 || !length.is_constant() || length.value() < shortest) {
        return 1;
    }
    const std::int64_t widest = vector_width(draft.algorithm, stage, Extent(8));
    return widest > vector_width(draft.algorithm, stage, length) ? widest : 1;
}

RowLayout row_layout(const Extent &length, std::int64_t vector, const RowLimits &limits, const SymbolRanges &symbols) {
    RowLayout layout;
    layout.vector = vector;
    if (!length.is_constant()) {
        layout.threads = length.bounds(symbols).max <= 1024 ? 128 : 256;
        layout.steps = 0;
        return layout;
    }
    const std::int64_t vectors = std::max<std::int64_t>((length.value() + vector - 1) / vector, 1);
    const std::int64_t most_steps = std::max<std::int64_t>(registers_for_rows / (vector * std::max(limits.kept, 1)), 1);
    const std::int64_t narrow_steps = vector <= 2 ? most_narrow_steps : limits.loads;
    if (vectors <= 32 * std::min(most_steps, narrow_steps)) {  // a warp, or a part of one, for a row
        layout.threads = 1;
        // Short rows of narrow accesses lie beside each other: threads without an element cost more than lines that several accesses share.
        const bool is_short = vector <= 2 && length.value() <= 2 * least_run;
        const std::int64_t run = is_short ? 1 : least_run, loads = is_short ? 2 * limits.loads : limits.loads;
        const auto is_short_of_threads = [&](std::int64_t threads) {
            return threads * loads < vectors || threads * vector < run || limits.rows * threads < limits.enough_rows * 32;
        };
        while (layout.threads < 32 && layout.threads < vectors && is_short_of_threads(layout.threads)) {
            layout.threads *= 2;
        }
        layout.steps = (vectors + layout.threads - 1) / layout.threads;
        layout.rows_per_block = std::max<std::int64_t>(128 / layout.threads, 1);
        layout.in_registers = true;
        return layout;
    }
    // Few threads with several independent loads each: rows follow each other closely, and exchanges are short.
    const auto in_warps = [](std::int64_t n) { return (n + 31) / 32 * 32; };
    const std::int64_t wanted = std::min(limits.loads, most_steps);
    const bool is_long = vector > 1 && vectors > wanted * longest_own_block;
    while (is_long && layout.blocks < limits.largest_cluster && vectors > wanted * shared_row_block * layout.blocks) {
        layout.blocks *= 2;
    }
    const std::int64_t own = (vectors + layout.blocks - 1) / layout.blocks;
    layout.threads = layout.blocks > 1 ? shared_threads(own, wanted, limits.row_tensors == 1)
                                       : std::min(in_warps((own + wanted - 1) / wanted), largest_row_block);
    layout.steps = (own + layout.threads - 1) / layout.threads;
    drop_idle_blocks(layout, vectors);
    layout.in_registers = layout.steps <= (layout.blocks == 1                                               ? most_steps
                                           : limits.row_tensors == 1 && layout.threads <= longest_own_block ? most_steps_of_few
                                                                                                            : most_shared_steps);
    if (layout.in_registers) {
        return layout;
    }
    layout.blocks = 1;
    layout.threads = largest_row_block;
    layout.steps = (vectors + layout.threads - 1) / layout.threads;
    return layout;
}

RowLayout packed_row_layout(std::int64_t length, std::int64_t vector, std::int64_t register_bytes,
                            std::initializer_list<std::int64_t> possible_threads, std::int64_t most_bytes) {
    RowLayout layout;
    layout.vector = vector;
    const std::int64_t vectors = (length + vector - 1) / vector;
    for (const std::int64_t threads : possible_threads) {
        layout.threads = threads;
        layout.steps = (vectors + threads - 1) / threads;
        layout.in_registers = layout.steps * register_bytes <= most_bytes;
        if (layout.in_registers) {
            return layout;
        }
    }
    layout.steps = 0;
    return layout;
}

RowLayout row_layout_of(const Extent &length, RowLayout layout, const RowChoice &choice) {
    constexpr std::int64_t least_steps = 4;  // of a part of a row
    const std::int64_t vectors = std::max<std::int64_t>((length.value() + layout.vector - 1) / layout.vector, 1);
    layout.blocks = choice.blocks > 0 ? choice.blocks : layout.blocks;
    const std::int64_t own = (vectors + layout.blocks - 1) / layout.blocks;
    if (choice.threads > 0) {
        layout.threads = choice.threads;
        layout.rows_per_block = 1;
    } else if (choice.blocks > 0) {
        layout.threads = shared_threads(own, least_steps, false);
        layout.rows_per_block = 1;
    }
    layout.rows_per_block = choice.rows_per_block > 0 ? choice.rows_per_block : layout.rows_per_block;
    layout.steps = (own + layout.threads - 1) / layout.threads;
    drop_idle_blocks(layout, vectors);
    const bool is_packed = (choice.blocks == 1 || layout.blocks > 1) && layout.steps * access_bytes <= most_packed_bytes;
    layout.in_registers = layout.steps * layout.vector <= registers_for_rows || is_packed;
    return layout;
}

}  // namespace tilewright
