#include "runtime/cuda/timer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "dsl/error.h"
#include "runtime/cuda/launch.h"

namespace tilewright {

namespace {

constexpr std::int64_t flush_bytes = 256LL << 20;

// Reads the whole buffer: evicts what the candidates left and leaves no dirty lines, which a write would.
const char *sweep_source = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry sweep(.param .u64 data, .param .u64 words, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %a, %b, %value, %sum;
    .reg .b64 %data, %words, %out, %i, %step, %wide, %place;
    ld.param.u64 %data, [data];
    ld.param.u64 %words, [words];
    ld.param.u64 %out, [out];
    mov.u32 %a, %ntid.x;
    mov.u32 %b, %ctaid.x;
    mul.wide.u32 %i, %a, %b;
    mov.u32 %b, %tid.x;
    cvt.u64.u32 %wide, %b;
    add.u64 %i, %i, %wide;
    mov.u32 %b, %nctaid.x;
    mul.wide.u32 %step, %a, %b;
    mov.u32 %sum, 0;
sweep_loop:
    setp.ge.u64 %p, %i, %words;
    @%p bra done;
    mad.lo.u64 %place, %i, 4, %data;
    ld.global.u32 %value, [%place];
    add.u32 %sum, %sum, %value;
    add.u64 %i, %i, %step;
    bra sweep_loop;
done:
    setp.eq.u32 %p, %sum, 1;
    @%p st.global.u32 [%out], %sum;
    ret;
}
)";

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<float> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

struct CacheSweep {
    CudaModule module;
    CUfunction function;
    static CacheSweep load() {
        CodeObject code;
        code.name = "sweep";
        code.image.resize(std::strlen(sweep_source) + 1);
        std::memcpy(code.image.data(), sweep_source, code.image.size());
        CudaModule module(code);
        const CUfunction function = module.function("sweep", 0, false);
        return {std::move(module), function};
    }
};

CudaTimer::CudaTimer() : flush_(flush_bytes + 256), sweep_(std::make_unique<CacheSweep>(CacheSweep::load())) {
    cuda_check(CudaDriver::get().memset8(flush_.address(), 0, flush_bytes, stream_.get()), "clearing memory");
    stream_.synchronize();
}

CudaTimer::~CudaTimer() = default;

void CudaTimer::flush_cache() {
    CUdeviceptr data = flush_.address();
    std::uint64_t words = flush_bytes / 4;
    CUdeviceptr out = flush_.address() + flush_bytes;
    void *parameters[] = {&data, &words, &out};
    CUlaunchConfig config = {};
    config.gridDimX = static_cast<unsigned>(cuda_device().multiprocessors * 4);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 512;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream_.get();
    cuda_check(CudaDriver::get().launch_kernel(&config, sweep_->function, parameters, nullptr), "sweeping the cache");
}

std::vector<double> CudaTimer::time(const std::vector<Enqueue> &candidates, const TimingOptions &options) {
    const CudaDriver &driver = CudaDriver::get();
    std::vector<CudaGraph> graphs;
    for (const Enqueue &enqueue : candidates) {
        enqueue(stream_.get());  // loads code, so that recording submits nothing but launches
        stream_.synchronize();
        graphs.emplace_back(stream_.get(), enqueue);
    }
    const auto started = std::chrono::steady_clock::now();
    do {
        for (const CudaGraph &graph : graphs) {
            graph.launch(stream_.get());
        }
        stream_.synchronize();
    } while (seconds_since(started) < options.warm_seconds);

    std::vector<std::vector<float>> times(graphs.size());
    for (int round = 0; round < options.rounds && (round < 3 || seconds_since(started) < options.limit_seconds); round++) {
        for (std::size_t i = 0; i < graphs.size(); i++) {
            flush_cache();
            start_.record(stream_.get());
            graphs[i].launch(stream_.get());
            end_.record(stream_.get());
            stream_.synchronize();
            float milliseconds = 0;
            cuda_check(driver.event_elapsed_time(&milliseconds, start_.get(), end_.get()), "reading a time");
            times[i].push_back(milliseconds * 1000);
        }
    }
    std::vector<double> medians;
    for (const std::vector<float> &each : times) {
        medians.push_back(median(each));
    }
    return medians;
}

double CudaTimer::time(const Enqueue &candidate, const TimingOptions &options) {
    return time(std::vector<Enqueue>{candidate}, options).front();
}

}  // namespace tilewright
