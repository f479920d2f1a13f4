// Conversions of element type, copies, and what is the identity in a pure graph that is not trained.
#include "lowering/decompose/promotion.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

Node *converted(Builder &b, const Arguments &a) {
    Node *self = a.tensor("self");
    return b.convert(self, a.dtype("dtype").value_or(dtype_of(self)), true);
}

Node *converted_like(Builder &b, const Arguments &a) { return b.convert(a.tensor("self"), dtype_of(a.tensor("other")), true); }

bool drops_nothing(const Arguments &a, const char *training) { return !a.flag(training, true) || a.real("p", 0.5) == 0; }

Rule dropout_rule(const char *input, const char *training) {
    return [=](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor(input);
        if (drops_nothing(a, training)) {
            return self;
        }
        if (a.real("p", 0.5) == 1) {
            return b.full(sizes_of(self), Extent(0), dtype_of(self));
        }
        a.refuse("dropout in training draws random numbers, which is not supported; export the model in eval mode");
    };
}

}  // namespace

void add_conversion_rules(RuleTable &table) {
    table.add({"aten.to.dtype", "aten.to.device", "aten.to.dtype_layout", "aten._to_copy.default", "prims.convert_element_type.default",
               "aten.to.prim_dtype", "aten.to.prim_Device"},
              converted);
    table.add({"aten.to.other", "aten.to.prim_other", "aten.type_as.default"}, converted_like);
    const std::pair<const char *, DType> casts[] = {{"float", DType::float32},     {"double", DType::float64}, {"half", DType::float16},
                                                    {"bfloat16", DType::bfloat16}, {"int", DType::int32},      {"long", DType::int64},
                                                    {"short", DType::int16},       {"char", DType::int8},      {"byte", DType::uint8},
                                                    {"bool", DType::boolean}};
    for (const auto &[name, type] : casts) {
        table.add(fmt::format("aten.{}.default", name),
                  [type = type](Builder &b, const Arguments &a) { return b.convert(a.tensor("self"), type, true); });
    }
    table.add("prims.convert_element_type.default",
              [](Builder &b, const Arguments &a) { return b.convert(a.tensor("a"), a.dtype("dtype").value(), true); });
    table.add({"aten.clone.default",      "aten.contiguous.default",     "aten.detach.default",       "aten.detach_.default",
               "aten.alias.default",      "aten.lift.default",           "aten.lift_fresh.default",   "aten.lift_fresh_copy.default",
               "aten.alias_copy.default", "aten.detach_copy.default",    "aten.cpu.default",          "aten.cuda.default",
               "aten.pin_memory.default", "aten.requires_grad_.default", "aten.real.default",         "aten.conj.default",
               "aten._conj.default",      "aten.conj_physical.default",  "aten.resolve_conj.default", "aten.resolve_neg.default"},
              [](Builder &, const Arguments &a) { return a.tensor("self"); });
    table.add({"aten.copy.default"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.broadcast(b.convert(a.tensor("src"), dtype_of(self), true), sizes_of(self));
    });
    table.add({"aten.fill.Scalar", "aten.fill.Tensor"}, [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.broadcast(as_tensor(b, a.operand("value"), dtype_of(self)), sizes_of(self));
    });
    table.add("aten.zero.default", [](Builder &b, const Arguments &a) {
        Node *self = a.tensor("self");
        return b.full(sizes_of(self), Extent(0), dtype_of(self));
    });
    table.add({"aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default", "aten.feature_alpha_dropout.default"},
              dropout_rule("input", "train"));
    table.add({"aten.dropout_.default", "aten.feature_dropout_.default"},
              dropout_rule("self", "train"));  // in eval mode nothing is written
    table.add("aten.native_dropout.default", [](Builder &b, const Arguments &a) -> Results {
        Node *self = a.tensor("input");
        if (!drops_nothing(a, "train")) {
            a.refuse("dropout in training draws random numbers, which is not supported; export the model in eval mode");
        }
        return {self, b.full(sizes_of(self), true, DType::boolean)};
    });
}

}  // namespace tilewright
