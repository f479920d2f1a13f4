#include "runtime/cuda/context.h"

#include <algorithm>

#include "dsl/error.h"
#include "runtime/bind_symbols.h"

namespace tilewright {

namespace {

constexpr std::size_t kept_bindings = 64;
constexpr std::size_t kept_graphs = 16;
constexpr int worth_recording = 3;  ///< submissions; below, a graph saves nothing

}  // namespace

CudaContext::CudaContext(const Plan &plan)
    : plan_(plan), status_(plan.steps.size() * sizeof(CudaIndexStatus)), status_address_(status_.device_address()) {}

const CudaStream &CudaContext::own_stream() {
    if (!own_stream_) {
        own_stream_ = std::make_unique<CudaStream>();
    }
    return *own_stream_;
}

CudaBinding &CudaContext::bind(const std::vector<CudaModule> &code, const SymbolValues &symbols, const ConstantSteps &constant,
                               const std::vector<CUdeviceptr> &fixed, CUstream stream) {
    const auto found = std::find_if(bindings_.begin(), bindings_.end(), [&](const auto &b) { return b->symbols() == symbols; });
    if (found != bindings_.end()) {
        bindings_.splice(bindings_.begin(), bindings_, found);
        return *bindings_.front();
    }
    bindings_.push_front(std::make_unique<CudaBinding>(plan_, code, symbols, constant, fixed));
    CudaBinding &binding = *bindings_.front();
    if (binding.engine_workspace() > 0 && workspace_.address() == 0) {
        workspace_ = DeviceMemory(engine_workspace_bytes);
    }
    if (arena_.address() == 0 || arena_.bytes() < binding.arena_bytes()) {
        if (arena_.address() != 0) {
            cuda_check(CudaDriver::get().stream_synchronize(stream), "running on the GPU");
            recorded_.clear();
        }
        arena_ = DeviceMemory(binding.arena_bytes());
    }
    for (auto &each : bindings_) {
        each->place_arena(arena_.address(), workspace_.address());
    }
    if (bindings_.size() > kept_bindings) {
        recorded_.remove_if([&](const Recorded &r) { return r.binding == bindings_.back().get(); });
        bindings_.pop_back();
    }
    return binding;
}

void CudaContext::enqueue(CudaBinding &binding, const CudaAddresses &addresses, const std::vector<bool> &constant, CUstream stream) {
    for (std::size_t b = 0; b < addresses.size(); b++) {
        if (addresses[b] != 0) {
            binding.set_address(static_cast<int>(b), addresses[b]);
        }
    }
    binding.enqueue_steps(constant, false, status_address_, stream);
    binding.enqueue_write_backs(stream);
}

void CudaContext::submit(CudaBinding &binding, const CudaAddresses &addresses, const std::vector<bool> &constant, CUstream stream,
                         bool may_record) {
    if (!may_record || binding.submissions() < worth_recording) {
        enqueue(binding, addresses, constant, stream);
        return;
    }
    auto found = std::find_if(recorded_.begin(), recorded_.end(),
                              [&](const Recorded &r) { return r.binding == &binding && r.addresses == addresses; });
    if (found == recorded_.end()) {
        recorded_.push_front({&binding, addresses});
        if (recorded_.size() > kept_graphs) {
            if (recorded_.back().graph) {
                cuda_check(CudaDriver::get().stream_synchronize(stream), "running on the GPU");
            }
            recorded_.pop_back();
        }
    } else {
        recorded_.splice(recorded_.begin(), recorded_, found);
    }
    Recorded &entry = recorded_.front();
    entry.uses++;
    if (entry.uses < 2) {
        enqueue(binding, addresses, constant, stream);
        return;
    }
    if (!entry.graph) {
        entry.graph =
            std::make_unique<CudaGraph>(own_stream().get(), [&](CUstream record) { enqueue(binding, addresses, constant, record); });
    }
    entry.graph->launch(stream);
}

void CudaContext::check_status() {
    auto *flags = reinterpret_cast<CudaIndexStatus *>(status_.data());
    for (std::size_t s = 0; s < plan_.steps.size(); s++) {
        if (flags[s].site_plus_one == 0) {
            continue;
        }
        const CudaIndexStatus raised = flags[s];
        std::fill_n(flags, plan_.steps.size(), CudaIndexStatus{});
        int site = raised.site_plus_one - 1;
        const std::vector<int> &sites = plan_.steps[s].sites;
        if (site < static_cast<int>(sites.size())) {
            site = sites[site];
        }
        throw UserError(index_error_message(plan_, site, raised.index, raised.size));
    }
}

}  // namespace tilewright
