#include "dsl/capture/export_types.h"

#include "dsl/capture/json.h"
#include "dsl/graph/simplify_extent.h"

namespace tilewright {
namespace {

constexpr std::size_t most_dimensions = 64;  // as in PyTorch

Extent checked_size(const Extent &size, std::size_t dimension) {
    const std::int64_t value = size.constant().value_or(0);
    if (value < 0) {
        user_error("dimension {} has the negative size {}", dimension, value);
    }
    if (value > INT32_MAX) {
        user_error("dimension {} has {} elements; the limit is {}, so split the tensor", dimension, value, INT32_MAX);
    }
    return size;
}

}  // namespace

// ScalarType of torch/_export/serde/schema.py.
DType dtype_of(std::int64_t scalar_type) {
    switch (scalar_type) {
        case 1:
            return DType::uint8;
        case 2:
            return DType::int8;
        case 3:
            return DType::int16;
        case 4:
            return DType::int32;
        case 5:
            return DType::int64;
        case 6:
            return DType::float16;
        case 7:
            return DType::float32;
        case 8:
            return DType::float64;
        case 9:
            return DType::complex32;
        case 10:
            return DType::complex64;
        case 11:
            return DType::complex128;
        case 12:
            return DType::boolean;
        case 13:
            return DType::bfloat16;
        case 28:
            return DType::uint16;
        case 29:
            return DType::float8_e4m3fn;
        case 30:
            return DType::float8_e5m2;
        case 31:
            return DType::float8_e4m3fnuz;
        case 32:
            return DType::float8_e5m2fnuz;
        case 33:
            return DType::float8_e8m0fnu;
        case 34:
            return DType::uint32;
        case 35:
            return DType::uint64;
        default:
            user_error("unknown element type number {}", scalar_type);
    }
}

MemoryFormat memory_format_of(std::int64_t number) {
    switch (number) {
        case 1:
            return MemoryFormat::contiguous;
        case 2:
            return MemoryFormat::channels_last;
        case 3:
            return MemoryFormat::channels_last_3d;
        case 4:
            return MemoryFormat::preserve;
        default:
            user_error("unknown memory format number {}", number);
    }
}

Device device_of(const boost::json::value &value) {
    const auto &object = as_object(value, "a device");
    Device device{std::string(as_text(field(object, "type"), "a device's type")), std::nullopt};
    if (const auto *index = optional_field(object, "index")) {
        const std::int64_t number = as_integer(*index, "a device's index");
        if (number < 0 || number > 1 << 16) {
            user_error("the device index {} makes no sense", number);
        }
        device.index = static_cast<int>(number);
    }
    return device;
}

Extent SizeReader::sym_int(const boost::json::value &value) {
    const auto [kind, content] = as_variant(value, "a size");
    if (kind == "as_int") {
        return as_integer(*content, "a size");
    }
    if (kind != "as_expr") {
        user_error("unknown kind of size {}", kind);
    }
    const std::string_view text = as_text(field(as_object(*content, "a size"), "expr_str"), "a size expression");
    const auto found = parsed_.find(text);
    if (found != parsed_.end()) {
        return found->second;
    }
    return parsed_.emplace(text, simplify(Extent::parse(text), ranges_)).first->second;
}

std::vector<Extent> SizeReader::sym_ints(const boost::json::value &value, std::string_view what) {
    const auto &list = as_array(value, what);
    if (list.size() > most_dimensions) {
        user_error("{} are {}; a tensor has at most {} dimensions", what, list.size(), most_dimensions);
    }
    std::vector<Extent> result;
    result.reserve(list.size());
    for (const auto &element : list) {
        result.push_back(sym_int(element));
    }
    return result;
}

TensorMeta SizeReader::tensor(const boost::json::value &value) {
    const auto &object = as_object(value, "tensor metadata");
    TensorMeta meta;
    meta.dtype = dtype_of(as_integer(field(object, "dtype"), "dtype"));
    if (!is_supported(meta.dtype)) {
        user_error("tensors of {} are not supported; convert them in the model before export", name(meta.dtype));
    }
    if (as_integer(field(object, "layout"), "layout") != strided_layout) {
        user_error("sparse and other layouts than strided are not supported; call to_dense() before export");
    }
    if (const auto *device = optional_field(object, "device")) {
        met_gpu_ = met_gpu_ || device_of(*device).type == "cuda";
    }
    meta.sizes = sym_ints(field(object, "sizes"), "sizes");
    meta.strides = sym_ints(field(object, "strides"), "strides");
    meta.offset = sym_int(field(object, "storage_offset"));
    if (meta.strides.size() != meta.sizes.size()) {
        user_error("{} strides for {} sizes", meta.strides.size(), meta.sizes.size());
    }
    for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
        checked_size(meta.sizes[i], i);
        if (meta.strides[i].constant().value_or(0) < 0) {
            user_error("dimension {} has the negative stride {}", i, meta.strides[i].to_string());
        }
    }
    if (meta.offset.constant().value_or(0) < 0) {
        user_error("the negative storage offset {}", meta.offset.to_string());
    }
    // Overflow is found here rather than where memory is asked for.
    (void)(meta.elements() * Extent(size_in_bytes(meta.dtype)));
    return meta;
}

}  // namespace tilewright
