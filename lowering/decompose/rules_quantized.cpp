// Products of quantised matrices.
#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

/// One number for the whole matrix, or one for each of its rows or columns.
Node *scale(Builder &b, const Arguments &a, const char *name, const Extent &along, bool is_row) {
    Node *scale = a.tensor(name);
    if (dtype_of(scale) != DType::float32) {
        a.refuse(fmt::format("'{}' is {}; scales of the whole matrix, of rows and of columns in float32 are supported", name,
                             tilewright::name(dtype_of(scale))));
    }
    if (product(sizes_of(scale)) == Extent(1)) {
        return b.reshape(scale, {});
    }
    const Extents wanted = is_row ? Extents{along, 1} : Extents{1, along};
    if (sizes_of(scale) != wanted) {
        a.refuse(fmt::format("'{}' has shape {}; one scale, or one for each {} (shape {}), is supported", name, to_string(sizes_of(scale)),
                             is_row ? "row" : "column", to_string(wanted)));
    }
    return scale;
}

/// a * b in float32, times both scales, plus the bias.
Node *scaled_product(Builder &b, const Arguments &a) {
    Node *left = a.tensor("self"), *right = a.tensor("mat2");
    Node *value = matmul(b, b.convert(left, DType::float32), b.convert(right, DType::float32));
    Node *rows = scale(b, a, "scale_a", sizes_of(left)[0], true), *columns = scale(b, a, "scale_b", sizes_of(right)[1], false);
    value = b.mul(b.mul(value, rows), columns);
    if (Node *bias = a.optional_tensor("bias")) {
        value = b.add(value, b.convert(bias, DType::float32));
    }
    const DType type = a.dtype("out_dtype").value_or(dtype_of(left));
    if (Node *result = a.optional_tensor("scale_result"); result && size_in_bytes(type) == 1) {
        value = b.mul(value, b.reshape(result, {}));
    }
    return b.convert(value, type);
}

}  // namespace

void add_quantized_rules(RuleTable &table) {
    table.add("aten._int_mm.default", [](Builder &b, const Arguments &a) { return matmul(b, a.tensor("self"), a.tensor("mat2")); });
    table.add("aten._scaled_mm.default", scaled_product);
}

}  // namespace tilewright
