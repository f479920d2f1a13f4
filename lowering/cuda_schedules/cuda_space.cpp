#include "lowering/cuda_schedules/cuda_space.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>

#include "lowering/cuda_schedules/convolution_schedule.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/fusion/shape.h"

namespace tilewright {

namespace {

constexpr std::size_t tiles_tried_first = 24;  ///< the others only beside one that was good

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
    if (shape == KernelShape::rows) {
        vary(&ScheduleChoice::ahead, {1, 2});
        vary(&ScheduleChoice::in_shared, {0, 1});
    } else if (shape == KernelShape::mixed) {
        vary(&ScheduleChoice::ahead, {-1, 1, 2, 3, 4});
    }
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

/// In how many of their numbers two tiles differ.
int differences(const ProductTile &a, const ProductTile &b) {
    const bool shape = a.m != b.m || a.n != b.n || a.warpgroups != b.warpgroups || a.turned != b.turned;
    const bool split = a.parts != b.parts || a.cluster != b.cluster;
    return shape + split + (a.takes_turns != b.takes_turns) + (a.keeps_right != b.keeps_right) + (a.persistent != b.persistent);
}
int differences(const StreamTile &a, const StreamTile &b) {
    const bool blocks = a.warpgroups != b.warpgroups || a.blocks != b.blocks;
    const bool grid = a.persistent != b.persistent || a.parts != b.parts;
    return (a.keys != b.keys) + blocks + grid + (a.stages != b.stages) + (a.turns != b.turns) + (a.hides != b.hides);
}

/// Collects schedules, each once.
class Collector {
public:
    void add(Directives directives) {
        if (seen_.insert(print(directives)).second) {
            list_.push_back(std::move(directives));
        }
    }
    std::vector<Directives> take() { return std::move(list_); }

private:
    std::set<std::string> seen_;
    std::vector<Directives> list_;
};

}  // namespace

CudaSpace::CudaSpace(const Kernel &kernel, const GpuFacts &facts)
    : kernel_(kernel),
      facts_(facts),
      product_(match_matrix_product(kernel, facts)),
      streaming_(product_ ? std::nullopt : match_streaming(kernel.algorithm, facts)) {
    if (product_) {
        product_tiles_ = product_tiles(*product_, kernel.algorithm.symbols, facts, 1000);
    }
    if (streaming_) {
        stream_tiles_ = stream_tiles(*streaming_, kernel.algorithm, facts);
    }
}

Directives CudaSpace::make(const ScheduleChoice &choice) {
    Directives directives = schedule_for(kernel_, facts_, choice);
    choices_.emplace(print(directives), choice);
    return directives;
}

Directives CudaSpace::make(const ProductTile &tile) {
    Directives directives = product_schedule(*product_, tile);
    products_.emplace(print(directives), tile);
    return directives;
}

Directives CudaSpace::make(const StreamTile &tile) {
    Directives directives = streaming_schedule(*streaming_, kernel_.algorithm, tile);
    streams_.emplace(print(directives), tile);
    return directives;
}

std::vector<Directives> CudaSpace::first() {
    Collector candidates;
    candidates.add(default_cuda_schedule(kernel_, facts_));
    for (std::size_t i = 0; i < std::min(product_tiles_.size(), tiles_tried_first); ++i) {
        candidates.add(make(product_tiles_[i]));
    }
    if (const auto convolution = match_convolution(kernel_, facts_)) {
        for (const ProductTile &tile : convolution_tiles(*convolution, kernel_.algorithm.symbols, facts_)) {
            candidates.add(convolution_schedule(*convolution, tile));
        }
    }
    for (std::size_t i = 0; i < std::min(stream_tiles_.size(), tiles_tried_first); ++i) {
        candidates.add(make(stream_tiles_[i]));
    }
    if (streaming_) {
        return candidates.take();
    }
    if (!product_) {
        candidates.add(make(ScheduleChoice{}));
    }
    for (const ScheduleChoice &choice : choices(kernel_shape(kernel_.algorithm).shape)) {
        if (!product_ || (choice.product >= 0 && choice.min_blocks == 0)) {
            candidates.add(make(choice));
        }
    }
    return candidates.take();
}

std::vector<Directives> CudaSpace::around(const Directives &proposal) {
    const std::string text = print(proposal);
    Collector result;
    if (const auto found = choices_.find(text); found != choices_.end()) {
        for (const ScheduleChoice &other : variations(ScheduleChoice(found->second), kernel_shape(kernel_.algorithm).shape)) {
            result.add(make(other));
        }
    }
    if (const auto found = products_.find(text); found != products_.end()) {
        const ProductTile tile = found->second;
        for (const ProductTile &other : product_tiles_) {
            if (differences(tile, other) == 1) {
                result.add(make(other));
            }
        }
        for (const int raster : {1, 2, 4, 8, 16, 32}) {
            ProductTile other = tile;
            other.raster = raster;
            result.add(make(other));
        }
    }
    if (const auto found = streams_.find(text); found != streams_.end()) {
        const StreamTile tile = found->second;
        for (const StreamTile &other : stream_tiles_) {
            if (differences(tile, other) == 1) {
                result.add(make(other));
            }
        }
    }
    return result.take();
}

std::vector<Directives> CudaSpace::denser(const Directives &proposal, int registers, int occupancy) {
    constexpr int more_blocks = 3;
    const auto found = choices_.find(print(proposal));
    Collector result;
    if (found == choices_.end() || registers == 0) {
        return {};
    }
    ScheduleChoice choice = found->second;
    choice.min_blocks = 1;
    const Directives bounded = make(choice);
    const auto bounds = std::find_if(bounded.begin(), bounded.end(), [](const Directive &d) { return d.name == "launch_bounds"; });
    const auto *threads = bounds == bounded.end() ? nullptr : std::get_if<std::int64_t>(&bounds->arguments.at(0));
    if (!threads) {
        return {};
    }
    const std::int64_t resident = occupancy * facts_.threads_per_multiprocessor / (100 * *threads);
    for (std::int64_t blocks = resident + 1; blocks <= resident + more_blocks && blocks * *threads <= facts_.threads_per_multiprocessor;
         ++blocks) {
        if (2 * facts_.registers_per_multiprocessor > registers * blocks * *threads) {
            choice.min_blocks = blocks;
            result.add(make(choice));
        }
    }
    return result.take();
}

std::vector<Directives> cuda_candidates(const Kernel &kernel, const GpuFacts &facts) { return CudaSpace(kernel, facts).first(); }

}  // namespace tilewright
