// The order of the steps from a kernel and its schedule to tiles.
#include <spdlog/spdlog.h>

#include "dsl/algorithm/analysis.h"
#include "lowering/cuda/lower.h"
#include "lowering/fusion/schedule_axes.h"
#include "lowering/nests/lower_nest.h"
#include "lowering/nests/special_forms.h"
#include "lowering/passes/passes.h"
#include "lowering/products/lower_tensor_core.h"
#include "lowering/streaming/lower_streaming.h"

namespace tilewright {

namespace {

/// Nest by nest, each by what its stages are.
std::vector<tile::Launch> lower_nests(const Kernel &kernel, const ScheduledKernel &schedule, const GpuFacts &facts) {
    const Placement placement = place_stages(kernel, schedule, facts);
    Storage storage(kernel.algorithm, placement);
    std::vector<tile::Launch> all;
    std::set<int> finished;  // anchors of nests that an earlier one has computed
    for (int i = 0; i < static_cast<int>(placement.nests.size()); ++i) {
        if (finished.count(placement.nests[i].anchor)) {
            continue;
        }
        const Stage &anchor = kernel.algorithm.stages[placement.nests[i].anchor];
        std::vector<tile::Launch> launches;
        if (const auto products = tensor_core_stages(kernel, placement.nests[i], schedule); !products.empty()) {
            launches = lower_tensor_core(kernel, placement, i, products, storage, schedule, facts);
        } else
            switch (classify(anchor)) {
                case Form::scatter:
                    launches = lower_scatter(kernel, placement, i, storage, schedule, facts);
                    break;
                case Form::sort:
                    launches = lower_sort(kernel, placement, i, storage, schedule, facts);
                    break;
                default:
                    launches = lower_nest(kernel, placement, i, storage, schedule, finished);
            }
        all.insert(all.end(), std::make_move_iterator(launches.begin()), std::make_move_iterator(launches.end()));
    }
    return all;
}

/// For TILEWRIGHT_LOG=passes.
void log_tiles(const char *pass, const tile::Launch &launch) {
    if (spdlog::should_log(spdlog::level::trace)) {
        spdlog::trace("// after {}\n{}", pass, tile::print(launch));
    }
}

struct LaunchPass {
    const char *name;
    void (*run)(tile::Launch &, const SymbolRanges &, const GpuFacts &);
};
constexpr LaunchPass passes[] = {
    {"slide_windows", [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { slide_windows(launch, symbols); }},
    {"hoist_guards", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { hoist_guards(launch); }},
    {"whole_rounds", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { whole_rounds(launch); }},
    // While the same values have the same names.
    {"bound_exponentials", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { bound_exponentials(launch); }},
    {"settle_conditions", [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { settle_conditions(launch, symbols); }},
    {"split_edges", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { split_edges(launch); }},
    {"load_windows", [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { load_windows(launch, symbols); }},
    // After guards stand outside of vector loops.
    {"widen_accesses", [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { widen_accesses(launch, symbols); }},
    {"load_squares", [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { load_squares(launch, symbols); }},
    {"load_next_strip", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { load_next_strip(launch); }},
    {"hold_loads", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { hold_loads(launch); }},
    {"hold_elements", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { hold_elements(launch); }},
    {"cheap_functions", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { cheap_functions(launch); }},
    {"pack_narrow_floats", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { pack_narrow_floats(launch); }},
    {"add_narrow_vectors", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { add_narrow_vectors(launch); }},
    {"insert_barriers", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &) { insert_barriers(launch); }},
    {"plan_shared_memory", [](tile::Launch &launch, const SymbolRanges &, const GpuFacts &facts) { plan_shared_memory(launch, facts); }},
    {"collect_parameters",
     [](tile::Launch &launch, const SymbolRanges &symbols, const GpuFacts &) { collect_parameters(launch, symbols); }},
};

}  // namespace

tile::Program lower_to_tiles(const Kernel &kernel, const Directives &directives, const GpuFacts &facts) {
    const ScheduledKernel schedule = apply_directives(schedule_axes(kernel), directives, ScheduleTarget::cuda);
    tile::Program program;
    program.kernel = kernel.name;
    program.symbols = kernel.algorithm.symbols;
    program.inputs = static_cast<int>(kernel.algorithm.inputs.size());
    const auto streamed = streaming_stage(kernel, schedule);
    program.launches = streamed ? lower_streaming(kernel, *streamed, schedule, facts) : lower_nests(kernel, schedule, facts);
    for (tile::Launch &launch : program.launches) {
        log_tiles("lowering", launch);
        for (const LaunchPass &pass : passes) {
            pass.run(launch, program.symbols, facts);
            log_tiles(pass.name, launch);
        }
    }
    tile::verify(program);
    return program;
}

}  // namespace tilewright
