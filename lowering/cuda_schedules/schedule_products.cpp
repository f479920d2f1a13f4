#include "lowering/cuda_schedules/shape_schedules.h"

#include <algorithm>
#include <optional>

#include "lowering/cuda_schedules/register_tiles.h"

namespace tilewright {

void schedule_products(ScheduleDraft &draft) {
    for (const Stage &stage : draft.algorithm.stages) {
        const Form form = draft.info.role(stage.name()).form;
        auto product =
            form == Form::contraction || form == Form::window ? match_register_product(draft.kernel, stage.name()) : std::nullopt;
        if (!product || draft.done.count(stage.name())) {
            continue;
        }
        // One that another stage of the kernel depends on in another way keeps a pass of its own.
        std::erase_if(product->outputs, [&](const std::string &output) { return !draft.choice.fuse_rows || draft.done.count(output) > 0; });
        const auto streams = product_streams(*product, draft.algorithm.symbols, draft.facts);
        const auto sums = streams.empty() ? shared_sums(*product, draft.algorithm.symbols, draft.facts) : std::vector<SharedSums>();
        const auto tiles = streams.empty() ? register_tiles(*product, draft.algorithm.symbols, draft.facts) : std::vector<RegisterTile>();
        const std::size_t count = streams.size() + sums.size() + tiles.size();
        if (count == 0) {
            continue;
        }
        const std::size_t chosen = std::min<std::size_t>(draft.choice.product, count - 1);
        int parts = 1;
        if (chosen < streams.size()) {
            parts = streams[chosen].parts;
            schedule_stream(*product, streams[chosen], draft.algorithm.symbols, draft.builder.directives);
        } else if (chosen < sums.size()) {
            schedule_shared_sums(*product, sums[chosen], draft.builder.directives);
        } else {
            const RegisterTile &tile = tiles[chosen - sums.size()];
            parts = tile.parts;
            schedule_register_tile(*product, tile, draft.builder.directives);
        }
        draft.done.insert(stage.name());
        if (parts == 1) {
            draft.done.insert(product->outputs.begin(), product->outputs.end());
        }
    }
}

void schedule_window(ScheduleDraft &draft, const Stage &stage) {
    const std::vector<std::string> names = draft.memory_order(stage);
    if (draft.info.role(stage.name()).form == Form::window && schedule_taps(draft, stage, stage, names)) {
        return;
    }
    const std::string flat = draft.fuse_names(stage, names, "flat");
    if (flat.empty()) {
        return;
    }
    constexpr int run = 16;  // terms that are summed apart
    StageSchedule schedule = draft.builder[stage.name()];
    schedule.split(flat, "block", "thread", 256);
    const auto product = match_register_product(draft.kernel, stage.name());
    if (product && product->sums_apart && product->variables.size() == 1) {
        schedule.split(product->variables[0], "run", "in_run", run).sum_apart();
    }
    schedule.gpu_blocks("block").gpu_threads("thread");
}

}  // namespace tilewright
