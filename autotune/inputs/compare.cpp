#include "autotune/inputs/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "autotune/inputs/float8_values.h"
#include "dsl/error.h"
#include "runtime/memory_plan.h"

namespace tilewright {
namespace {

template<typename T> T load(const std::byte *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template<typename T> void store(std::byte *to, T value) { std::memcpy(to, &value, sizeof value); }

std::uint16_t round_to_bfloat16(float value) {
    if (std::isnan(value)) {
        return 0x7fc0;
    }
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Visits every index of a tensor, row-major.
class Walk {
public:
    explicit Walk(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)), index_(sizes_.size(), 0) {
        done_ = std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end();
    }
    bool done() const { return done_; }
    void next() {
        for (std::size_t d = sizes_.size(); d-- > 0;) {
            if (++index_[d] < sizes_[d]) {
                return;
            }
            index_[d] = 0;
        }
        done_ = true;
    }
    std::int64_t offset(const std::vector<std::int64_t> &strides) const {
        std::int64_t sum = 0;
        for (std::size_t d = 0; d < index_.size(); ++d) {
            sum += index_[d] * strides[d];
        }
        return sum;
    }
    std::string to_string() const { return fmt::format("[{}]", fmt::join(index_, ", ")); }

private:
    std::vector<std::int64_t> sizes_, index_;
    bool done_ = false;
};

struct Elements {
    explicit Elements(const HostTensor &tensor)
        : type(tensor.meta.dtype), data(tensor.data()), strides(evaluate(tensor.meta.strides, {})) {}
    const std::byte *place(const Walk &walk) const { return data + walk.offset(strides) * size_in_bytes(type); }
    double at(const Walk &walk) const { return read_element(type, place(walk)); }

    DType type;
    const std::byte *data;
    std::vector<std::int64_t> strides;
};

}  // namespace

double read_element(DType type, const std::byte *element) {
    switch (type) {
        case DType::boolean:
            return load<std::uint8_t>(element) != 0;
        case DType::uint8:
            return load<std::uint8_t>(element);
        case DType::int8:
            return load<std::int8_t>(element);
        case DType::int16:
            return load<std::int16_t>(element);
        case DType::uint16:
            return load<std::uint16_t>(element);
        case DType::int32:
            return load<std::int32_t>(element);
        case DType::uint32:
            return load<std::uint32_t>(element);
        case DType::int64:
            return static_cast<double>(load<std::int64_t>(element));
        case DType::uint64:
            return static_cast<double>(load<std::uint64_t>(element));
        case DType::float16:
            return static_cast<double>(load<_Float16>(element));
        case DType::bfloat16:
            return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(element)) << 16);
        case DType::float8_e4m3fn:
        case DType::float8_e5m2:
            return float8_to_double(type, load<std::uint8_t>(element));
        case DType::float32:
            return load<float>(element);
        case DType::float64:
            return load<double>(element);
        default:
            user_error("values of type {} cannot be compared", name(type));
    }
}

void write_element(DType type, std::byte *element, double value) {
    switch (type) {
        case DType::boolean:
            return store<std::uint8_t>(element, value != 0);
        case DType::uint8:
            return store(element, static_cast<std::uint8_t>(value));
        case DType::int8:
            return store(element, static_cast<std::int8_t>(value));
        case DType::int16:
            return store(element, static_cast<std::int16_t>(value));
        case DType::uint16:
            return store(element, static_cast<std::uint16_t>(value));
        case DType::int32:
            return store(element, static_cast<std::int32_t>(value));
        case DType::uint32:
            return store(element, static_cast<std::uint32_t>(value));
        case DType::int64:
            return store(element, static_cast<std::int64_t>(value));
        case DType::uint64:
            return store(element, static_cast<std::uint64_t>(value));
        case DType::float16:
            return store(element, static_cast<_Float16>(value));
        case DType::bfloat16:
            return store(element, round_to_bfloat16(static_cast<float>(value)));
        case DType::float8_e4m3fn:
        case DType::float8_e5m2:
            return store(element, double_to_float8(type, value));
        case DType::float32:
            return store(element, static_cast<float>(value));
        case DType::float64:
            return store(element, value);
        default:
            user_error("values of type {} cannot be written", name(type));
    }
}

double default_tolerance(DType type) {
    switch (type) {
        case DType::float8_e5m2:
            return 0.25;
        case DType::float8_e4m3fn:
            return 0.125;
        case DType::float16:
            return 2e-3;
        case DType::bfloat16:
            return 1.6e-2;
        case DType::float32:
            return 2e-5;
        case DType::float64:
            return 1e-11;
        default:
            return 0;
    }
}

Comparison compare(const HostTensor &expected, const HostTensor &actual) {
    if (expected.meta.dtype != actual.meta.dtype || expected.meta.sizes != actual.meta.sizes) {
        return {0, fmt::format("expected {}{}, got {}{}", name(expected.meta.dtype), to_string(expected.meta.sizes),
                               name(actual.meta.dtype), to_string(actual.meta.sizes))};
    }
    const Elements wanted(expected);
    const Elements got(actual);
    const std::vector<std::int64_t> sizes = evaluate(expected.meta.sizes, {});
    double largest = 0;
    for (Walk walk(sizes); !walk.done(); walk.next()) {
        const double value = std::abs(wanted.at(walk));
        largest = std::isfinite(value) ? std::max(largest, value) : largest;
    }
    const bool exact = !is_floating_point(wanted.type);
    const double allowed = default_tolerance(wanted.type) * largest;
    Comparison result;
    for (Walk walk(sizes); !walk.done(); walk.next()) {
        const double a = wanted.at(walk);
        const double b = got.at(walk);
        bool same = false;
        if (exact) {
            same = std::memcmp(wanted.place(walk), got.place(walk), static_cast<std::size_t>(size_in_bytes(wanted.type))) == 0;
        } else if (std::isnan(a) || std::isnan(b)) {
            same = std::isnan(a) && std::isnan(b);
        } else if (std::isinf(a) || std::isinf(b)) {
            same = a == b;
        } else {
            const double error = std::abs(a - b);
            same = error <= allowed;
            result.largest_error = std::max(result.largest_error, largest > 0 ? error / largest : error);
        }
        if (!same && !result.mismatch) {
            result.mismatch = fmt::format("{}: expected {}, got {}", walk.to_string(), a, b);
        }
    }
    return result;
}

}  // namespace tilewright
