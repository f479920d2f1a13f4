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

/// The choice with one number changed, in the order in which it is worth trying.
std::vector<ScheduleChoice> variations(const ScheduleChoice &choice, KernelShape shape) {
    std::vector<ScheduleChoice> list;
    const auto vary = [&](auto ScheduleChoice::*number, std::initializer_list<int> values) {
        for (const int value : values) {
            ScheduleChoice other = choice;
            other.*number = value;
            list.push_back(other);
        }
    };
    if (multiplies(shape)) {
        vary(&ScheduleChoice::product, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1});
        vary(&ScheduleChoice::min_blocks, {1, 2, 3, 4});
        return list;
    }
    vary(&ScheduleChoice::threads, {128, 256, 512, 64, 1024, 32, 96, 192, 384, 768});
    vary(&ScheduleChoice::steps, {1, 2, 4, 8});
    vary(&ScheduleChoice::cluster, {1, 2, 4, 8});
    vary(&ScheduleChoice::rows_per_block, {1, 2, 4, 8});
    vary(&ScheduleChoice::vector, {1, 2, 4, 8});
    vary(&ScheduleChoice::align, {1, 8});
    vary(&ScheduleChoice::min_blocks, {-1, 1, 2, 3, 4, 6, 8, 12});
    vary(&ScheduleChoice::parts, {1, 2, 4, 8, 16, 32, 64, 128, 132, 256, 264, 396, 528, 792, 1056});
    vary(&ScheduleChoice::kept, {1, 16, 64});
    vary(&ScheduleChoice::fuse_rows, {0, 1});
    return list;
}

/// What a search starts from.
std::vector<ScheduleChoice> choices(KernelShape shape) {
    std::vector<ScheduleChoice> list = variations({}, shape);
    if (!multiplies(shape)) {  // numbers that pay only together
        for (const std::int64_t threads : {64, 128, 256, 512}) {
            for (const std::int64_t other : {1, 2, 4, 8}) {
                list.push_back({.threads = threads, .rows_per_block = other});
                list.push_back({.threads = threads, .steps = other});
                list.push_back({.threads = threads, .cluster = other});
            }
        }
    }
    return list;
}

/// Collects schedules, each once.
class Collector {
public:
    Collector(const Kernel &kernel, const GpuFacts &facts, std::map<std::string, ScheduleChoice> &made_of) : kernel_(kernel), facts_(facts), made_of_(made_of) {}
    void add(Directives directives) {
        if (seen_.insert(print(directives)).second) {
            list_.push_back(std::move(directives));
        }
    }
    void add(const ScheduleChoice &choice) {
        Directives directives = schedule_for(kernel_, facts_, choice);
        made_of_.emplace(print(directives), choice);
        add(std::move(directives));
    }
    std::vector<Directives> take() { return std::move(list_); }

private:
    const Kernel &kernel_;
    const GpuFacts &facts_;
    std::map<std::string, ScheduleChoice> &made_of_;
    std::set<std::string> seen_;
    std::vector<Directives> list_;
};

}  // namespace

std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts) { return CudaSpace(kernel, facts).first(); }

std::vector<Directives> CudaSpace::first() {
    const Kernel &kernel = kernel_;
    const GpuFacts &facts = facts_;
    Collector candidates(kernel, facts, made_of_);
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
    if (!product) {
        candidates.add(ScheduleChoice{});
    }
    for (const ScheduleChoice &choice : choices(kernel_shape(kernel.algorithm).shape)) {
        if (!product || (choice.product >= 0 && choice.min_blocks == 0)) {
            candidates.add(choice);
        }
    }
    return candidates.take();
}

std::vector<Directives> CudaSpace::around(const Directives &proposal) {
    const auto choice = made_of_.find(print(proposal));
    if (choice == made_of_.end()) {
        return {};
    }
    Collector result(kernel_, facts_, made_of_);
    for (const ScheduleChoice &other : variations(ScheduleChoice(choice->second), kernel_shape(kernel_.algorithm).shape)) {
        result.add(other);
    }
    return result.take();
}

}  // namespace tilewright
