#include "lowering/cuda/candidates.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>

#include "lowering/cuda/convolution_schedule.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda/product_schedule.h"
#include "lowering/cuda/streaming_schedule.h"
#include "lowering/fusion/shape.h"

namespace tilewright {

namespace {

constexpr std::size_t most_stream_tiles = 24;  ///< their cost orders them well enough for the rest to lose

bool multiplies(KernelShape shape) { return shape == KernelShape::contraction || shape == KernelShape::window; }

/// What schedules outside the matrix unit are made with, the default left out.
std::vector<ScheduleChoice> choices(KernelShape shape) {
    std::vector<ScheduleChoice> list;
    if (multiplies(shape)) {
        for (int i = 0; i < 12; ++i) {
            list.push_back({.product = i});
        }
        list.push_back({.product = -1});
        for (const std::int64_t blocks : {1, 2, 3, 4}) {
            list.push_back({.min_blocks = blocks});
        }
        return list;
    }
    for (const std::int64_t threads : {64, 128, 256, 512, 1024}) {
        for (const std::int64_t rows : {1, 2, 4, 8}) {
            for (const std::int64_t steps : {1, 2, 4}) {
                if (threads * rows <= 1024) {
                    list.push_back({.threads = threads, .steps = steps, .rows_per_block = rows});
                }
            }
        }
    }
    for (const std::int64_t vector : {1, 2, 4, 8}) {
        list.push_back({.vector = vector});
    }
    for (const std::int64_t parts : {1, 2, 4, 8, 16, 32, 64, 132, 264}) {
        list.push_back({.parts = parts});
    }
    for (const std::int64_t blocks : {1, 2, 3, 4, 6, 8}) {
        list.push_back({.min_blocks = blocks});
    }
    list.push_back({.fuse_rows = false});
    return list;
}

/// One number of the choice changed.
std::vector<ScheduleChoice> variations(const ScheduleChoice &choice) {
    std::vector<ScheduleChoice> list;
    const auto vary = [&](std::int64_t ScheduleChoice::*number, std::initializer_list<std::int64_t> values) {
        for (const std::int64_t value : values) {
            ScheduleChoice other = choice;
            other.*number = value;
            list.push_back(other);
        }
    };
    vary(&ScheduleChoice::min_blocks, {1, 2, 3, 4, 6, 8});
    vary(&ScheduleChoice::steps, {1, 2, 4, 8});
    vary(&ScheduleChoice::threads, {32, 64, 96, 128, 192, 256, 384, 512, 768, 1024});
    vary(&ScheduleChoice::rows_per_block, {1, 2, 4, 8});
    vary(&ScheduleChoice::vector, {1, 2, 4, 8});
    vary(&ScheduleChoice::parts, {1, 2, 4, 8, 16, 32, 64, 132, 264});
    return list;
}

/// Collects schedules, each once.
class Collector {
public:
    Collector(const Kernel &kernel, const GpuFacts &facts) : kernel_(kernel), facts_(facts) {}
    void add(Directives directives) {
        if (seen_.insert(print(directives)).second) {
            list_.push_back(std::move(directives));
        }
    }
    void add(const ScheduleChoice &choice) { add(schedule_for(kernel_, facts_, choice)); }
    std::vector<Directives> take() { return std::move(list_); }

private:
    const Kernel &kernel_;
    const GpuFacts &facts_;
    std::set<std::string> seen_;
    std::vector<Directives> list_;
};

}  // namespace

std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts) {
    Collector candidates(kernel, facts);
    candidates.add(default_cuda_schedule(kernel, facts));
    const auto product = match_matrix_product(kernel, facts);
    if (product) {
        for (const ProductTile &tile : product_tiles(*product, kernel.algorithm.symbols, facts)) {
            candidates.add(product_schedule(*product, tile));
        }
    }
    if (const auto convolution = match_convolution(kernel, facts)) {
        for (const ProductTile &tile : convolution_tiles(*convolution, kernel.algorithm.symbols, facts)) {
            candidates.add(convolution_schedule(*convolution, tile));
        }
    }
    if (const auto form = product ? std::nullopt : match_streaming(kernel.algorithm, facts)) {
        std::vector<StreamTile> tiles = stream_tiles(*form, kernel.algorithm, facts);
        tiles.resize(std::min(tiles.size(), most_stream_tiles));
        for (const StreamTile &tile : tiles) {
            candidates.add(streaming_schedule(*form, kernel.algorithm, tile));
        }
        return candidates.take();
    }
    for (const ScheduleChoice &choice : choices(kernel_shape(kernel.algorithm).shape)) {
        if (!product || (choice.product >= 0 && choice.min_blocks == 0)) {
            candidates.add(choice);
        }
    }
    return candidates.take();
}

std::vector<Directives> cuda_variations(const Kernel &kernel, const GpuFacts &facts, const Directives &proposal) {
    Collector result(kernel, facts);
    std::vector<ScheduleChoice> known = choices(kernel_shape(kernel.algorithm).shape);
    known.insert(known.begin(), ScheduleChoice{});
    const auto choice = std::find_if(known.begin(), known.end(), [&](const ScheduleChoice &c) { return schedule_for(kernel, facts, c) == proposal; });
    if (choice != known.end()) {
        for (const ScheduleChoice &other : variations(*choice)) {
            result.add(other);
        }
    }
    return result.take();
}

}  // namespace tilewright
