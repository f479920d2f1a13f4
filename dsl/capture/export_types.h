// The value types of torch.export's serialised form: element types, sizes and tensor metadata.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>

#include "dsl/graph/graph.h"

namespace tilewright {

/// Reads sizes; an expression that occurs often is parsed once.
class SizeReader {
public:
    /// Expressions are simplified as far as the ranges allow: a stride of Max(s0, 1) is s0 where s0 is at least 1.
    explicit SizeReader(SymbolRanges ranges = {}) : ranges_(std::move(ranges)) {}
    Extent sym_int(const boost::json::value &value);
    std::vector<Extent> sym_ints(const boost::json::value &value, std::string_view what);
    /// UserError for an element type, a layout or a size that is not supported or makes no sense.
    TensorMeta tensor(const boost::json::value &value);
    /// Whether one of the tensors read so far lay on a GPU.
    bool met_gpu() const { return met_gpu_; }

private:
    SymbolRanges ranges_;
    bool met_gpu_ = false;
    std::map<std::string, Extent, std::less<>> parsed_;
};

DType dtype_of(std::int64_t scalar_type);
MemoryFormat memory_format_of(std::int64_t number);
Device device_of(const boost::json::value &value);
/// The number of a strided layout; all others are refused for tensors.
inline constexpr std::int64_t strided_layout = 7;

}  // namespace tilewright
