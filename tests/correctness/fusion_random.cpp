// Random graphs of core operators, grouped in every mode: kernel by kernel they compute what the whole algorithm does, bit for bit.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <numeric>
#include <random>

#include "lowering/translate/translate.h"
#include "tests/support/partitions.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;

namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t count(const Sizes &sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t(1), std::multiplies<>()); }

/// Writes a graph line by line; every value is float32.
class RandomGraph {
public:
    explicit RandomGraph(std::uint32_t seed) : random_(seed) {
        for (int i = 0; i < 3; ++i) {
            placeholder(i == 0 ? Sizes{2, 3, 4} : i == 1 ? Sizes{6, 4} : Sizes{4});
        }
        for (int i = 0; i < 14; ++i) {
            add();
        }
        std::vector<std::string> outputs{name(values_.size() - 1)};
        for (int i = 0; i < 2; ++i) {
            outputs.push_back(name(3 + random_() % (values_.size() - 3)));
        }
        text_ += fmt::format("%output = output(values=[%{}])\n", fmt::join(outputs, ", %"));
    }

    const std::string &text() const { return text_; }
    std::map<std::string, HostTensor> inputs() {
        std::map<std::string, HostTensor> tensors;
        std::normal_distribution<double> normal;
        for (int i = 0; i < 3; ++i) {
            std::vector<double> elements(count(values_[i]));
            std::generate(elements.begin(), elements.end(), [&] { return normal(random_); });
            tensors[name(i)] = tests::tensor(DType::float32, values_[i], elements);
        }
        return tensors;
    }

private:
    static std::string name(std::size_t value) { return fmt::format("v{}", value); }
    std::size_t pick() {
        return random_() % 3 ? values_.size() - 1 - random_() % std::min<std::size_t>(values_.size(), 4) : random_() % values_.size();
    }

    void placeholder(const Sizes &sizes) {
        text_ += fmt::format("%{} : float32[{}] = placeholder\n", name(values_.size()), fmt::join(sizes, ", "));
        values_.push_back(sizes);
    }
    std::size_t emit(const Sizes &sizes, const std::string &call) {
        text_ += fmt::format("%{} : float32[{}] = call_function {}\n", name(values_.size()), fmt::join(sizes, ", "), call);
        values_.push_back(sizes);
        return values_.size() - 1;
    }

    void add() {
        const std::size_t a = pick();
        if (values_[a].empty() || count(values_[a]) > 200) {
            return;
        }
        switch (random_() % 12) {
            case 0:
                return permute(a);
            case 1:
                return reshape(a);
            case 2:
                return slice(a);
            case 3:
                return reduce(a);
            case 4:
                return dot(a);
            case 5:
                return cat(a);
            case 6:
                return centre(a);
            case 7:
                return scan(a);
            case 8:
                emit(values_[a], fmt::format("prims.flip(a=%{}, dims=[{}])", name(a), random_() % values_[a].size()));
                return;
            case 9:
                emit(values_[a],
                     fmt::format("prims.{}(a=%{})", std::vector<std::string>{"exp", "neg", "abs", "tanh"}[random_() % 4], name(a)));
                return;
            default:
                return binary(a);
        }
    }

    void permute(std::size_t a) {
        std::vector<int> dims(values_[a].size());
        std::iota(dims.begin(), dims.end(), 0);
        std::shuffle(dims.begin(), dims.end(), random_);
        Sizes sizes;
        for (int dim : dims) {
            sizes.push_back(values_[a][dim]);
        }
        emit(sizes, fmt::format("prims.permute(a=%{}, dims=[{}])", name(a), fmt::join(dims, ", ")));
    }

    void reshape(std::size_t a) { reshaped(a, random_sizes(count(values_[a]))); }
    std::size_t reshaped(std::size_t a, const Sizes &sizes) {
        return emit(sizes, fmt::format("prims.reshape(a=%{}, size=[{}])", name(a), fmt::join(sizes, ", ")));
    }

    Sizes random_sizes(std::int64_t elements) {
        Sizes sizes;
        for (std::int64_t factor : {2, 3, 2, 5}) {
            if (elements % factor == 0 && elements > factor && random_() % 2) {
                sizes.push_back(factor);
                elements /= factor;
            }
        }
        sizes.push_back(elements);
        std::shuffle(sizes.begin(), sizes.end(), random_);
        return sizes;
    }

    void slice(std::size_t a) {
        const std::size_t dim = random_() % values_[a].size();
        const std::int64_t size = values_[a][dim], start = random_() % size, step = 1 + random_() % 2;
        Sizes sizes = values_[a];
        sizes[dim] = (size - start + step - 1) / step;
        emit(sizes, fmt::format("prims.slice(a=%{}, dim={}, start={}, end={}, step={})", name(a), dim, start, size, step));
    }

    void reduce(std::size_t a) { reduced(a, random_() % values_[a].size()); }
    std::size_t reduced(std::size_t a, std::size_t dim) {
        Sizes sizes = values_[a];
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
        return emit(sizes, fmt::format("prims.{}(a=%{}, dims=[{}])", random_() % 2 ? "sum" : "amax", name(a), dim));
    }

    /// The value minus its sum (or maximum) along a dimension: rows.
    void centre(std::size_t a) {
        const std::size_t dim = random_() % values_[a].size();
        const std::size_t sum = reduced(a, dim);
        std::vector<std::size_t> dims;
        for (std::size_t i = 0; i < values_[a].size(); ++i) {
            if (i != dim) {
                dims.push_back(i);
            }
        }
        const std::size_t all = emit(values_[a], fmt::format("prims.broadcast_in_dim(a=%{}, size=[{}], dims=[{}])", name(sum),
                                                             fmt::join(values_[a], ", "), fmt::join(dims, ", ")));
        emit(values_[a], fmt::format("prims.sub(a=%{}, b=%{})", name(a), name(all)));
    }

    void scan(std::size_t a) { emit(values_[a], fmt::format("prims.cumsum(a=%{}, dim={})", name(a), random_() % values_[a].size())); }

    void dot(std::size_t a) {
        const std::int64_t k = values_[a].back(), m = count(values_[a]) / k;
        const std::size_t left = values_[a].size() == 2 ? a : reshaped(a, {m, k});
        for (std::size_t b = 0; b < values_.size(); ++b) {
            if (count(values_[b]) % k == 0 && count(values_[b]) <= 40 * k) {
                const std::int64_t n = count(values_[b]) / k;
                const std::size_t right = reshaped(b, {k, n});
                emit({m, n}, fmt::format("tw.dot(a=%{}, b=%{}, out_dtype=torch.float32)", name(left), name(right)));
                return;
            }
        }
    }

    void cat(std::size_t a) {
        Sizes sizes = values_[a];
        sizes[0] *= 2;
        emit(sizes, fmt::format("prims.cat(tensors=[%{0}, %{0}], dim=0)", name(a)));
    }

    void binary(std::size_t a) {
        std::vector<std::size_t> partners;
        for (std::size_t b = 0; b < values_.size(); ++b) {
            if (count(values_[b]) == count(values_[a])) {
                partners.push_back(b);
            }
        }
        const std::size_t b = partners[random_() % partners.size()];
        const std::size_t same = values_[b] == values_[a] ? b : reshaped(b, values_[a]);
        emit(values_[a],
             fmt::format("prims.{}(a=%{}, b=%{})", std::vector<std::string>{"add", "mul", "maximum"}[random_() % 3], name(a), name(same)));
    }

    std::mt19937 random_;
    std::vector<Sizes> values_;
    std::string text_;
};

bool equal_bits(const HostTensor &a, const HostTensor &b) {
    return a.meta.sizes == b.meta.sizes &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.meta.elements().value()) * size_in_bytes(a.meta.dtype)) == 0;
}

std::vector<std::pair<std::string, FusionOptions>> modes() {
    std::vector<std::pair<std::string, FusionOptions>> all;
    for (FusionMode mode : {FusionMode::search, FusionMode::max, FusionMode::none}) {
        FusionOptions options;
        options.mode = mode;
        all.emplace_back(mode == FusionMode::search ? "search" : mode == FusionMode::max ? "max" : "none", options);
    }
    return all;
}

}  // namespace

TEST_CASE("random graphs mean the same when they are grouped") {
    int kernels = 0;
    for (std::uint32_t seed = 0; seed < 150; ++seed) {
        RandomGraph graph(seed);
        CAPTURE(seed);
        CAPTURE(graph.text());
        const Algorithm algorithm = translate(tests::program_from(graph.text())).algorithm;
        const auto inputs = graph.inputs();
        const auto expected = tests::evaluate(algorithm, inputs).outputs;
        for (const auto &[mode, options] : modes()) {
            CAPTURE(mode);
            const Partition grouped = partition(algorithm, options);
            kernels += static_cast<int>(grouped.kernels.size());
            for (const Kernel &kernel : grouped.kernels) {
                verify(kernel.algorithm);
            }
            const auto actual = tests::evaluate(grouped, algorithm, inputs).outputs;
            REQUIRE(actual.size() == expected.size());
            for (const auto &[output, tensor] : expected) {
                CAPTURE(output);
                REQUIRE(equal_bits(actual.at(output), tensor));
            }
        }
    }
    CHECK(kernels > 600);
}
