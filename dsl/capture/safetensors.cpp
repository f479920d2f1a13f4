#include "dsl/capture/safetensors.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <numeric>

#include "dsl/atomic_file.h"
#include "dsl/capture/json.h"
#include "dsl/capture/mapped_file.h"

namespace tilewright {
namespace {

namespace json = boost::json;

constexpr std::uint64_t largest_header = 100'000'000;  // the format's own limit
constexpr std::size_t length_bytes = 8;

constexpr std::pair<std::string_view, DType> type_names[] = {
    {"BOOL", DType::boolean},
    {"U8", DType::uint8},
    {"I8", DType::int8},
    {"I16", DType::int16},
    {"I32", DType::int32},
    {"I64", DType::int64},
    {"U16", DType::uint16},
    {"U32", DType::uint32},
    {"U64", DType::uint64},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"F32", DType::float32},
    {"F64", DType::float64},
    {"C64", DType::complex64},
    {"F8_E4M3", DType::float8_e4m3fn},
    {"F8_E5M2", DType::float8_e5m2},
    {"F8_E8M0", DType::float8_e8m0fnu},
};

DType parse_type(std::string_view name) {
    for (const auto &[candidate, type] : type_names) {
        if (candidate == name) {
            return type;
        }
    }
    user_error("the element type {} is not supported", name);
}

std::string_view type_name(DType type) {
    for (const auto &[name, candidate] : type_names) {
        if (candidate == type) {
            return name;
        }
    }
    user_error("safetensors files have no element type {}; convert the tensor first", name(type));
}

HostTensor read_tensor(const json::object &entry, const Bytes &data) {
    std::vector<Extent> sizes;
    for (const json::value &size : as_array(field(entry, "shape"), "shape")) {
        sizes.emplace_back(as_integer(size, "a size"));
        if (sizes.back().value() < 0) {
            user_error("the negative size {}", sizes.back().value());
        }
    }
    if (sizes.size() > 64) {
        user_error("{} dimensions; a tensor has at most 64", sizes.size());
    }
    HostTensor tensor;
    tensor.meta = TensorMeta::contiguous(parse_type(as_text(field(entry, "dtype"), "dtype")), std::move(sizes));
    const json::array &offsets = as_array(field(entry, "data_offsets"), "data_offsets");
    if (offsets.size() != 2) {
        user_error("data_offsets should be two numbers");
    }
    const std::int64_t begin = as_integer(offsets[0], "data_offsets"), end = as_integer(offsets[1], "data_offsets");
    if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > data.size) {
        user_error("its data at {} to {} lies outside the file's {} bytes of data", begin, end, data.size);
    }
    const std::int64_t bytes = (tensor.meta.elements() * Extent(size_in_bytes(tensor.meta.dtype))).value();
    if (end - begin != bytes) {
        user_error("{} takes {} bytes but has {}", tensor.meta.to_string(), bytes, end - begin);
    }
    Bytes part{std::shared_ptr<const std::byte>(data.data, data.data.get() + begin), static_cast<std::size_t>(bytes)};
    part = aligned(part, static_cast<std::size_t>(size_in_bytes(tensor.meta.dtype)));
    tensor.storage = part.data;
    tensor.storage_bytes = part.size;
    return tensor;
}

/// The elements in row-major order.
std::string contiguous_bytes(const HostTensor &tensor) {
    const auto bytes = static_cast<std::size_t>(size_in_bytes(tensor.meta.dtype));
    const auto elements = static_cast<std::size_t>(tensor.meta.elements().value());
    if (tensor.meta.is_contiguous()) {
        return {reinterpret_cast<const char *>(tensor.data()), elements * bytes};
    }
    std::string result;
    result.reserve(elements * bytes);
    std::vector<std::int64_t> index(tensor.meta.sizes.size());
    for (std::size_t i = 0; i < elements; ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
            at += index[d] * tensor.meta.strides[d].value();
        }
        result.append(reinterpret_cast<const char *>(tensor.data()) + at * static_cast<std::int64_t>(bytes), bytes);
        for (std::size_t d = index.size(); d-- > 0 && ++index[d] == tensor.meta.sizes[d].value();) {
            index[d] = 0;
        }
    }
    return result;
}

NamedTensors read_mapped(const Bytes &file) {
    if (file.size < length_bytes) {
        user_error("it has {} bytes, too few for a safetensors file", file.size);
    }
    std::uint64_t length = 0;
    std::memcpy(&length, file.data.get(), length_bytes);
    if (length > largest_header || length > file.size - length_bytes) {
        user_error("its header claims {} bytes in a file of {}; it is damaged or no safetensors file", length, file.size);
    }
    const std::string_view header(reinterpret_cast<const char *>(file.data.get()) + length_bytes, static_cast<std::size_t>(length));
    const json::value document = parse_json(header);
    const std::size_t start = length_bytes + header.size();
    const Bytes data{std::shared_ptr<const std::byte>(file.data, file.data.get() + start), file.size - start};
    NamedTensors tensors;
    for (const auto &entry : as_object(document, "the header")) {
        const std::string name(entry.key());
        if (name != "__metadata__") {
            tensors.emplace_back(name,
                                 in_context([&] { return name; }, [&] { return read_tensor(as_object(entry.value(), "an entry"), data); }));
        }
    }
    return tensors;
}

}  // namespace

NamedTensors read_safetensors(const std::string &path) {
    const Bytes file = map_file(path);
    return in_context([&] { return path; }, [&] { return read_mapped(file); });
}

void write_safetensors(const std::string &path, const NamedTensors &tensors) {
    // The format allows no gaps, so wide elements go first: each then lies at a multiple of its size.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return size_in_bytes(tensors[a].second.meta.dtype) > size_in_bytes(tensors[b].second.meta.dtype);
    });
    std::vector<std::pair<std::int64_t, std::int64_t>> offsets(tensors.size());
    std::int64_t end = 0;
    for (const std::size_t i : order) {
        const TensorMeta &meta = tensors[i].second.meta;
        const std::int64_t begin = end;
        end = (Extent(end) + meta.elements() * Extent(size_in_bytes(meta.dtype))).value();
        offsets[i] = {begin, end};
    }
    json::object header;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto &[name, tensor] = tensors[i];
        json::array shape;
        for (const Extent &size : tensor.meta.sizes) {
            shape.emplace_back(size.value());
        }
        const std::string_view type = type_name(tensor.meta.dtype);
        const bool added = header
                               .emplace(name, json::object{{"dtype", json::string_view(type.data(), type.size())},
                                                           {"shape", std::move(shape)},
                                                           {"data_offsets", {offsets[i].first, offsets[i].second}}})
                               .second;
        if (!added) {
            user_error("{}: two tensors are called {}; rename one", path, name);
        }
    }
    std::string text = json::serialize(header);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    AtomicFile file(path);
    file.write(&length, length_bytes);
    file.write(text);
    for (const std::size_t i : order) {
        file.write(contiguous_bytes(tensors[i].second));
    }
    file.commit();
}

}  // namespace tilewright
