#include "autotune/measure/resources.h"

#include <algorithm>

namespace tilewright {
namespace {

constexpr int warp = 32;

}  // namespace

int occupancy(const GpuFacts &facts, int threads, int registers, int shared_bytes) {
    const int warps = std::max((threads + warp - 1) / warp, 1);
    const int unit = facts.register_allocation_unit;
    const int of_warp = std::max((registers * warp + unit - 1) / unit * unit, unit);
    const std::int64_t by_registers = facts.registers_per_multiprocessor / of_warp / warps;
    const std::int64_t by_threads = facts.threads_per_multiprocessor / (warps * warp);
    const std::int64_t by_shared = facts.shared_per_multiprocessor / (shared_bytes + facts.shared_reserved_per_block);
    const std::int64_t blocks = std::min({by_registers, by_threads, by_shared, static_cast<std::int64_t>(facts.blocks_per_multiprocessor)});
    return static_cast<int>(100 * blocks * warps * warp / facts.threads_per_multiprocessor);
}

Resources resources_of(const CompiledKernel &kernel, const GpuFacts *facts) {
    Resources result;
    for (const CodeObject &code : kernel.code) {
        result.registers = std::max(result.registers, code.registers);
        result.spill_bytes += code.spill_stores + code.spill_loads;
        result.shared_bytes = std::max(result.shared_bytes, code.shared_bytes);
    }
    int least = 100;
    bool launches = false;
    for (const Step &step : kernel.steps) {
        const auto *launch = std::get_if<LaunchStep>(&step.action);
        if (launch && facts && launch->code >= 0) {
            const CodeObject &code = kernel.code[static_cast<std::size_t>(launch->code)];
            const int shared = code.shared_bytes + launch->dynamic_shared_bytes;
            result.shared_bytes = std::max(result.shared_bytes, shared);
            least = std::min(least, occupancy(*facts, launch->block[0] * launch->block[1] * launch->block[2], code.registers, shared));
            launches = true;
        }
    }
    result.occupancy = launches ? least : 0;
    return result;
}

}  // namespace tilewright
