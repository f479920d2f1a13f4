#include "runtime/cpu/sort.h"

#include <HalideRuntime.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

namespace tilewright {
namespace {

/// An element as it is stored; `key` orders it.
template<typename Stored> struct Plain {
    using Type = Stored;
    static Stored key(Stored value) { return value; }
};

struct BFloat16 {
    using Type = std::uint16_t;
    static float key(Type value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }
};

struct Float16 {
    using Type = std::uint16_t;
    /// Monotonic in the number, equal for both zeros; every NaN beyond infinity.
    static std::int32_t key(Type value) {
        const std::int32_t magnitude = value & 0x7fff;
        if (magnitude > 0x7c00) {
            return 0x7fff;
        }
        return (value & 0x8000) != 0 ? -magnitude : magnitude;
    }
};

template<typename Key> bool less(Key a, Key b) {
    if constexpr (std::is_floating_point_v<Key>) {
        return a < b || (b != b && a == a);
    } else {
        return a < b;
    }
}

struct RowPlaces {
    std::int64_t input = 0, values = 0, indices = 0;  ///< elements from the buffers' starts
};

template<typename Element> class RowSorter {
public:
    RowSorter(const halide_buffer_t *input, bool descending, halide_buffer_t *values, halide_buffer_t *indices)
        : input_(input), values_(values), indices_(indices), last_(values->dimensions - 1), descending_(descending) {}

    void run() { visit(0, places_of_origin()); }

private:
    using Type = typename Element::Type;
    using Key = decltype(Element::key(Type{}));

    /// The outputs' first element; the input holds a region of its own.
    RowPlaces places_of_origin() const {
        RowPlaces origin;
        for (int d = 0; d < last_; d++) {
            origin.input += std::int64_t{values_->dim[d].min - input_->dim[d].min} * input_->dim[d].stride;
        }
        origin.input -= std::int64_t{input_->dim[last_].min} * input_->dim[last_].stride;
        return origin;
    }

    void visit(int dimension, RowPlaces at) {
        if (dimension == last_) {
            sort_row(at);
            return;
        }
        for (int i = 0; i < values_->dim[dimension].extent; i++) {
            visit(dimension + 1, at);
            at.input += input_->dim[dimension].stride;
            at.values += values_->dim[dimension].stride;
            at.indices += indices_->dim[dimension].stride;
        }
    }

    void sort_row(const RowPlaces &at) {
        const auto *source = reinterpret_cast<const Type *>(input_->host) + at.input;
        row_.resize(extent_of_row());
        for (std::size_t i = 0; i < row_.size(); i++) {
            row_[i] = {Element::key(source[static_cast<std::int64_t>(i) * input_->dim[last_].stride]), static_cast<std::int32_t>(i)};
        }
        // The outputs may hold a part of the row: what is asked for of it.
        const int first = values_->dim[last_].min;
        order_row(first + values_->dim[last_].extent);
        auto *values = reinterpret_cast<Type *>(values_->host) + at.values;
        auto *indices = reinterpret_cast<std::int64_t *>(indices_->host) + at.indices;
        for (int i = 0; i < values_->dim[last_].extent; i++) {
            const std::int32_t place = row_[first + i].place;
            values[std::int64_t{i} * values_->dim[last_].stride] = source[std::int64_t{place} * input_->dim[last_].stride];
            indices[std::int64_t{i} * indices_->dim[last_].stride] = place;
        }
    }

    /// Afterwards the first `wanted` of the row are in order.
    void order_row(std::ptrdiff_t wanted) {
        const auto before = [this](const Entry &a, const Entry &b) { return descending_ ? less(b.key, a.key) : less(a.key, b.key); };
        if (wanted == std::ssize(row_)) {
            std::stable_sort(row_.begin(), row_.end(), before);
        } else {
            std::partial_sort(row_.begin(), row_.begin() + wanted, row_.end(),
                              [&](const Entry &a, const Entry &b) { return before(a, b) || (!before(b, a) && a.place < b.place); });
        }
    }

    std::size_t extent_of_row() const { return static_cast<std::size_t>(input_->dim[last_].min + input_->dim[last_].extent); }

    struct Entry {
        Key key;
        std::int32_t place;
    };
    const halide_buffer_t *input_;
    halide_buffer_t *values_, *indices_;
    int last_;
    bool descending_;
    std::vector<Entry> row_;
};

/// A bounds query: whole rows of the input for the rows that are asked for.
void require_input(halide_buffer_t *input, std::int32_t extent, const halide_buffer_t *values) {
    for (int d = 0; d < input->dimensions; d++) {
        input->dim[d].min = values->dim[d].min;
        input->dim[d].extent = values->dim[d].extent;
    }
    input->dim[input->dimensions - 1].min = 0;
    input->dim[input->dimensions - 1].extent = extent;
}

template<typename Element> int sorted(const halide_buffer_t *input, bool descending, halide_buffer_t *values, halide_buffer_t *indices) {
    RowSorter<Element>(input, descending, values, indices).run();
    return 0;
}

}  // namespace

int sort_rows(halide_buffer_t *input, std::int32_t extent, bool descending, halide_buffer_t *values, halide_buffer_t *indices) {
    if (input->is_bounds_query()) {
        require_input(input, extent, values);
        return 0;
    }
    if (extent == 0) {
        return 0;
    }
    const halide_type_t type = input->type;
    switch (type.code) {
        case halide_type_float:
            return type.bits == 16   ? sorted<Float16>(input, descending, values, indices)
                   : type.bits == 32 ? sorted<Plain<float>>(input, descending, values, indices)
                                     : sorted<Plain<double>>(input, descending, values, indices);
        case halide_type_bfloat:
            return sorted<BFloat16>(input, descending, values, indices);
        case halide_type_int:
            switch (type.bits) {
                case 8:
                    return sorted<Plain<std::int8_t>>(input, descending, values, indices);
                case 16:
                    return sorted<Plain<std::int16_t>>(input, descending, values, indices);
                case 32:
                    return sorted<Plain<std::int32_t>>(input, descending, values, indices);
                default:
                    return sorted<Plain<std::int64_t>>(input, descending, values, indices);
            }
        case halide_type_uint:
            switch (type.bits) {
                case 1:
                case 8:
                    return sorted<Plain<std::uint8_t>>(input, descending, values, indices);
                case 16:
                    return sorted<Plain<std::uint16_t>>(input, descending, values, indices);
                case 32:
                    return sorted<Plain<std::uint32_t>>(input, descending, values, indices);
                default:
                    return sorted<Plain<std::uint64_t>>(input, descending, values, indices);
            }
        default:
            return 1;
    }
}

}  // namespace tilewright
