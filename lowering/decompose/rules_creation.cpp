// Tensors made from nothing.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

DType created_type(const Arguments &a, DType otherwise) { return a.dtype("dtype").value_or(a.result_dtype(otherwise)); }

/// A constant of the size given, or of the size of `self`.
Rule constant_rule(std::optional<Number> value, const char *value_name = nullptr) {
    return [=](Builder &b, const Arguments &a) {
        Node *like = a.optional_tensor("self");
        const Number number = value_name ? a.number(value_name) : *value;
        const DType type = created_type(a, like ? dtype_of(like) : DType::float32);
        return b.full(a.has("size") ? a.extents("size") : sizes_of(like), number, type);
    };
}

bool is_integral(const Number &number) { return !std::holds_alternative<double>(number); }

Extent to_extent(const Number &number) {
    if (const auto *extent = std::get_if<Extent>(&number)) {
        return *extent;
    }
    return Extent(static_cast<std::int64_t>(to_double(number)));
}

/// PyTorch steps in float64 (the CPU's accumulation type of float32) and rounds each element once.
Node *arange(Builder &b, const Arguments &a) {
    const Number start = a.number("start", Number(Extent(0)));
    const Number end = a.number("end");
    const Number step = a.number("step", Number(Extent(1)));
    const bool whole = is_integral(start) && is_integral(step);
    const DType type = created_type(a, whole && is_integral(end) ? DType::int64 : DType::float32);
    if (whole || (is_integer(type) && a.result())) {  // integers take whole steps, from the start without its fraction
        const Extent size = a.result() ? a.result()->sizes[0] : ceil_div(to_extent(end) - to_extent(start), to_extent(step));
        const DType counted = compute_type(type) == type && type != DType::boolean ? type : DType::int64;
        return b.convert(b.iota(size, to_extent(start), to_extent(step), counted), type);
    }
    const Extent size = a.result() ? a.result()->sizes[0]
                                   : Extent(static_cast<std::int64_t>(std::ceil((to_double(end) - to_double(start)) / to_double(step))));
    Node *index = b.iota(size, DType::float64);
    return b.convert(b.add(b.mul(index, to_double(step)), to_double(start)), type);
}

/// Ends of integer sequences are integers.
Operand sequence_end(Builder &b, const Arguments &a, const char *name, DType type) {
    const Operand end = a.operand(name);
    if (is_floating_point(type)) {
        return end;
    }
    return end.node() ? Operand(b.convert(end.node(), DType::int64)) : Operand(std::trunc(to_double(end.number())));
}

/// The first half counts up from the start, the second half down from the end.
Node *linspace_values(Builder &b, const Operand &start, const Operand &end, std::int64_t steps, DType type) {
    if (steps == 1) {
        return b.reshape(as_tensor(b, start, type), {1});
    }
    Node *index = b.iota(steps, type);
    const double count = static_cast<double>(steps - 1);
    const Operand first = start.node() ? Operand(b.convert(start.node(), type)) : start;
    const Operand last = end.node() ? Operand(b.convert(end.node(), type)) : end;
    const bool numbers = !start.node() && !end.node();
    const Operand step = numbers ? Operand((to_double(end.number()) - to_double(start.number())) / count)
                                 : Operand(b.div(b.sub(as_tensor(b, last, type), as_tensor(b, first, type)), count));
    Node *up = b.add(b.mul(index, step), first);
    Node *down = b.sub(last, b.mul(b.sub(count, index), step));
    return b.where(b.lt(index, static_cast<double>(steps / 2)), up, down);
}

Node *linspace(Builder &b, const Arguments &a) {
    const DType type = created_type(a, DType::float32);
    const DType computed = is_floating_point(type) ? compute_type(type) : DType::float64;
    const std::int64_t steps = a.integer("steps");
    if (steps == 0) {
        return b.full({0}, 0.0, type);
    }
    return b.convert(linspace_values(b, sequence_end(b, a, "start", type), sequence_end(b, a, "end", type), steps, computed), type);
}

Node *logspace(Builder &b, const Arguments &a) {
    const DType type = created_type(a, DType::float32);
    const DType computed = is_floating_point(type) ? compute_type(type) : DType::float64;
    const std::int64_t steps = a.integer("steps");
    if (steps == 0) {
        return b.full({0}, 0.0, type);
    }
    return b.convert(b.binary("pow", a.real("base", 10),
                              linspace_values(b, sequence_end(b, a, "start", type), sequence_end(b, a, "end", type), steps, computed)),
                     type);
}

Node *eye(Builder &b, const Arguments &a) {
    const Extent rows = a.extent("n");
    const Extent columns = a.extent("m", rows);
    Node *row = b.unsqueeze(b.iota(rows), 1);
    return b.convert(b.eq(row, b.iota(columns)), created_type(a, DType::float32));
}

/// Row-major coordinates of a triangle. Place k lies in as many rows as end at or before it.
Node *triangle_indices(Builder &b, const Arguments &a, bool lower) {
    const std::int64_t rows = a.integer("row");
    const std::int64_t columns = a.integer("col");
    const std::int64_t offset = a.integer("offset", 0);
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t below = std::clamp<std::int64_t>(r + offset + (lower ? 1 : 0), 0, columns);
        count += lower ? below : columns - below;
    }
    const DType type = created_type(a, DType::int64);
    if (count == 0) {
        return b.full({2, 0}, Extent(0), type);
    }
    Node *below = b.minimum(b.maximum(b.iota(rows, offset + (lower ? 1 : 0), 1, DType::int64), 0), columns);
    Node *length = lower ? below : b.sub(columns, below);
    Node *row_end = b.scan("cumsum", length, 0);
    Node *place = b.iota(count);
    Node *row = b.sum(b.convert(b.ge(b.unsqueeze(place, 1), row_end), DType::int64), {1});
    Node *column = b.sub(place, b.gather(b.sub(row_end, length), 0, row));
    if (!lower) {
        column = b.add(column, b.gather(below, 0, row));
    }
    return b.convert(b.cat({b.unsqueeze(row, 0), b.unsqueeze(column, 0)}, 0), type);
}

Rule triangle_rule(bool lower) {
    return [=](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        const int rank = rank_of(self);
        const Extent diagonal = a.extent("diagonal", Extent(0));
        Node *row = b.unsqueeze(b.iota(sizes_of(self)[rank - 2], diagonal, 1, DType::int64), 1);
        Node *column = b.iota(sizes_of(self)[rank - 1]);
        Node *kept = lower ? b.le(column, row) : b.ge(column, row);
        return b.where(kept, self, b.full({}, Extent(0), dtype_of(self)));
    };
}

}  // namespace

void add_creation_rules(RuleTable &table) {
    const Number zero = Extent(0);
    const Number one = Extent(1);
    table.add({"aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", "aten.empty.memory_format",
               "aten.empty_like.default", "aten.new_empty.default", "aten.empty_permuted.default", "aten.empty_strided.default",
               "aten.new_empty_strided.default", "aten._efficientzerotensor.default"},
              constant_rule(zero));
    table.add({"aten.ones.default", "aten.ones_like.default", "aten.new_ones.default"}, constant_rule(one));
    table.add({"aten.full.default", "aten.full_like.default", "aten.new_full.default"}, constant_rule({}, "fill_value"));
    table.add("aten.scalar_tensor.default",
              [](Builder &b, const Arguments &a) { return b.full({}, a.number("s"), created_type(a, DType::float32)); });
    table.add({"aten.arange.default", "aten.arange.start", "aten.arange.start_step"}, arange);
    table.add("prims.iota.default", [](Builder &b, const Arguments &a) {
        return b.iota(a.extent("length"), a.extent("start"), a.extent("step"), a.dtype("dtype").value_or(DType::int64));
    });
    table.add({"aten.linspace.default", "aten.linspace.Tensor_Tensor", "aten.linspace.Tensor_Scalar", "aten.linspace.Scalar_Tensor"},
              linspace);
    table.add({"aten.logspace.default", "aten.logspace.Tensor_Tensor", "aten.logspace.Tensor_Scalar", "aten.logspace.Scalar_Tensor"},
              logspace);
    table.add({"aten.eye.default", "aten.eye.m"}, eye);
    table.add("aten.tril_indices.default", [](Builder &b, const Arguments &a) { return triangle_indices(b, a, true); });
    table.add("aten.triu_indices.default", [](Builder &b, const Arguments &a) { return triangle_indices(b, a, false); });
    table.add("aten.tril.default", triangle_rule(true));
    table.add("aten.triu.default", triangle_rule(false));
    const Rule window = [](Builder &b, const Arguments &a) -> Results {
        // A periodic window is the symmetric one of one sample more, without its last.
        const std::int64_t length = a.integer("window_length");
        const bool periodic = a.flag("periodic", true);
        const bool hann = a.target().find("hann") != std::string::npos;
        const double alpha = a.real("alpha", hann ? 0.5 : 0.54);
        const double beta = a.real("beta", hann ? 0.5 : 0.46);
        const DType type = created_type(a, DType::float32);
        if (length <= 1) {
            return b.full({length}, 1.0, type);
        }
        const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? length : length - 1);
        Node *wave = b.unary("cos", b.mul(b.iota(length, compute_type(type)), step));
        return b.convert(b.sub(alpha, b.mul(wave, beta)), type);
    };
    table.add({"aten.hann_window.default", "aten.hann_window.periodic", "aten.hamming_window.default", "aten.hamming_window.periodic",
               "aten.hamming_window.periodic_alpha", "aten.hamming_window.periodic_alpha_beta"},
              window);
}

}  // namespace tilewright
