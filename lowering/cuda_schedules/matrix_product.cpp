#include "lowering/cuda_schedules/matrix_product.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda_schedules/row_reductions.h"
#include "lowering/nests/stage_expansion.h"
#include "lowering/passes/index_math.h"
#include "lowering/products/unit_element.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// What a factor multiplies: a tensor that the bulk copy unit fetches, or a value of 16 bits around one.
struct FactorRead {
    const hi::Call *call = nullptr;
    Expr value;  ///< keeps the call alive
    UnitElement element = UnitElement::bfloat16;
    bool computed = false;  ///< more than the tensor's element
};
/// The variable of a place, and how many of its neighbours share an element there.
std::pair<std::string, int> packed_variable(const Expr &place) {
    const auto *quotient = place.as<hi::Div>();
    const auto divisor = quotient ? hi::as_const_int(quotient->b) : std::nullopt;
    const auto *variable = divisor ? quotient->a.as<hi::Variable>() : place.as<hi::Variable>();
    return variable && divisor.value_or(1) <= 2 ? std::pair(variable->name, static_cast<int>(divisor.value_or(1)))
                                                : std::pair(std::string(), 1);
}
/// A read's places along what lies together in memory: a view's quotient and remainder of one variable are that variable again.
struct ReadPlace {
    Expr index;
    Extent stride, size;
};
std::vector<ReadPlace> read_places(const hi::Call *read, const TensorMeta &meta) {
    std::vector<ReadPlace> places;
    for (std::size_t i = 0; i < read->args.size(); ++i) {
        const auto *rest = read->args[i].as<hi::Mod>();
        const auto *whole = places.empty() ? nullptr : places.back().index.as<hi::Div>();
        const bool joins = rest && whole && hi::equal(rest->a, whole->a) && hi::equal(rest->b, whole->b) && hi::as_const_int(rest->b) &&
                           meta.sizes[i] == Extent(*hi::as_const_int(rest->b)) && places.back().stride == meta.sizes[i] * meta.strides[i];
        if (joins) {
            places.back() = {rest->a, meta.strides[i], places.back().size * meta.sizes[i]};
        } else {
            places.push_back({read->args[i], meta.strides[i], meta.sizes[i]});
        }
    }
    return places;
}
std::optional<FactorRead> read_of(const Expr &factor, const std::string &k, const Algorithm &algorithm) {
    FactorRead result;
    const auto unit = unit_factor(expand_stages(algorithm, factor));
    if (!unit || unit->value.type() == Halide::Float(32)) {
        return std::nullopt;
    }
    result.value = unit->value;
    result.element = unit->element;
    const auto *plain = result.value.as<hi::Call>();
    result.computed = !(plain && is_read(plain));
    const bool rows_only = unit_bytes(unit->element) != 2;
    if (result.computed && rows_only) {
        return std::nullopt;
    }
    visit_reads(result.value, [&](const hi::Call *call) {
        const TensorInput *input = algorithm.find_input(call->name);
        bool along_k = false, packed = false;
        for (const ReadPlace &place : input ? read_places(call, input->meta) : std::vector<ReadPlace>()) {
            const auto [variable, packing] = packed_variable(place.index);
            along_k = along_k || (variable == k && place.stride == Extent(1));
            packed = packed || packing > 1;
        }
        const bool narrow = call->type.bits() >= 8 && call->type.bytes() <= 2 && call->args.size() > 1;
        const bool fits = result.computed ? along_k && narrow : !packed && (along_k || !rows_only);
        result.call = !result.call && fits ? call : result.call;
    });
    return result.call && result.call->call_type == hi::Call::Image ? std::optional(result) : std::nullopt;
}

/// Arguments of the product that the read's places mention, and whether the bulk copy unit can fetch it: unit stride along one of its
/// own axes or K, other strides multiples of 16 bytes.
struct OperandPlaces {
    std::set<std::string> variables;
    bool fetchable = false;
};
OperandPlaces places_of(const hi::Call *read, const Algorithm &algorithm) {
    OperandPlaces result;
    const TensorInput *input = algorithm.find_input(read->name);
    const int per_access = 16 / read->type.bytes();
    bool unit = false, aligned = input != nullptr;
    for (const ReadPlace &place : input ? read_places(read, input->meta) : std::vector<ReadPlace>()) {
        const std::string variable = packed_variable(place.index).first;
        if (variable.empty()) {
            for (const std::string &name : variables_of(place.index)) {
                result.variables.insert(name);
            }
            aligned = aligned && variables_of(place.index).empty();
            continue;
        }
        result.variables.insert(variable);
        if (place.size == Extent(1)) {
            continue;
        }
        unit = unit || place.stride == Extent(1);
        aligned = aligned && (place.stride == Extent(1) || mod(place.stride, per_access) == Extent(0));
    }
    aligned = aligned && input && mod(input->meta.offset, per_access) == Extent(0);
    result.fetchable = unit && aligned;
    return result;
}

/// The first of several products, or the only one, as its operands stand.
struct SingleProduct {
    const Stage *stage = nullptr;
    FactorRead left, right;  ///< the left one varies along the rows
    OperandPlaces a, b;
};

std::optional<SingleProduct> match_single(const Stage &stage, const Algorithm &algorithm) {
    const auto fold = stage.func.function().has_update_definition() ? match_fold(stage.func) : std::nullopt;
    if (!fold || fold->combiner != Combiner::sum || fold->variables.size() != 1 || fold->terms.size() != 1 || fold->scan_axis >= 0 ||
        stage.rank() == 0) {
        return std::nullopt;
    }
    const auto product = factors_of(inline_lets(fold->terms[0]));
    const auto left = product ? read_of(product->first, fold->variables[0], algorithm) : std::nullopt;
    const auto right = product ? read_of(product->second, fold->variables[0], algorithm) : std::nullopt;
    if (!left || !right || !multiply_together(left->element, right->element) || !(stage.func.types()[0] == unit_sum_type(left->element)) ||
        (left->computed && right->computed)) {
        return std::nullopt;
    }
    SingleProduct result{&stage, *left, *right, places_of(left->call, algorithm), places_of(right->call, algorithm)};
    const std::string &k = fold->variables[0];
    if (!result.a.fetchable || !result.b.fetchable || !result.a.variables.count(k) || !result.b.variables.count(k)) {
        return std::nullopt;
    }
    if (result.a.variables.count(stage.func.function().args().back())) {
        std::swap(result.a, result.b);
        std::swap(result.left, result.right);
    }
    return result;
}

/// Places along which a stage extends, and their variables.
std::vector<int> real_axes(const Stage &stage) {
    std::vector<int> axes;
    for (int i = 0; i < stage.rank(); ++i) {
        if (!(stage.extents[i] == Extent(1))) {
            axes.push_back(i);
        }
    }
    return axes;
}

/// Whether everything that reads a product reads it at its own arguments; axes of one place may be left out.
bool read_in_place(const Algorithm &algorithm, const std::set<std::string> &products) {
    for (const Stage &stage : algorithm.stages) {
        for (const Read &read : reads_of(stage)) {
            if (read.from_input || !products.count(read.producer) || stage.name() == read.producer) {
                continue;
            }
            const std::vector<int> own = real_axes(stage), read_axes = real_axes(*algorithm.find_stage(read.producer));
            if (own.size() != read_axes.size()) {
                return false;
            }
            for (std::size_t i = 0; i < own.size(); ++i) {
                const auto *variable = read.indices[read_axes[i]].as<hi::Variable>();
                if (!variable || variable->name != stage.func.function().args()[own[i]]) {
                    return false;
                }
            }
        }
    }
    return true;
}

/// Rows and columns as arguments of the anchor. False where it leaves out axes of other products than of a single row.
bool place_in_anchor(const Algorithm &algorithm, MatrixProduct &result) {
    const Stage &anchor = *algorithm.find_stage(result.outputs.front()), &product = *algorithm.find_stage(result.products.front());
    if (anchor.rank() == product.rank()) {
        return true;
    }
    const bool single_row = result.m == Extent(1) && result.batch == Extent(1) && real_axes(anchor).size() == 1;
    result.rows.clear();
    result.columns = single_row ? real_axes(anchor)[0] : -1;
    return single_row;
}

/// Sizes and arguments of rows and columns; false where they are no matrix.
bool measure(const SingleProduct &product, MatrixProduct &result) {
    const Stage &stage = *product.stage;
    const std::vector<std::string> arguments = stage.func.function().args();
    result.k = stage.reduction_extents[0];
    for (int i = 0; i < stage.rank(); ++i) {
        const bool in_a = product.a.variables.count(arguments[i]) > 0, in_b = product.b.variables.count(arguments[i]) > 0;
        if (in_a == in_b) {
            if (!in_a) {
                return false;
            }
            // Axes in front of a batch axis belong to the batch, whatever varies along them.
            result.batch = result.batch * stage.extents[i] * result.m;
            result.rows.clear();
            result.m = 1;
        } else if (in_a) {
            result.rows.push_back(i);
            result.m = result.m * stage.extents[i];
        } else if (i + 1 == stage.rank()) {
            result.columns = i;
            result.n = stage.extents[i];
        } else {
            return false;
        }
    }
    return !result.rows.empty() && result.columns >= 0;
}

/// Of float8 products the unit keeps 14 bits of a sum: less than twice what rounding to 16 bits loses, up to so many terms.
bool loses_bits_of_sums(const Algorithm &algorithm, const Extent &terms) {
    constexpr std::int64_t most_terms = 8192;
    const bool is_wide = std::any_of(algorithm.outputs.begin(), algorithm.outputs.end(),
                                     [](const TensorOutput &output) { return size_in_bytes(output.meta.dtype) > 2; });
    return is_wide || terms.bounds(algorithm.symbols).max > most_terms;
}

}  // namespace

bool collect_outputs(const Kernel &kernel, const std::set<std::string> &products, std::vector<std::string> &outputs) {
    const Algorithm &algorithm = kernel.algorithm;
    const auto space = [](const Stage &stage) {
        std::vector<Extent> extents;
        for (int i : real_axes(stage)) {
            extents.push_back(stage.extents[i]);
        }
        return extents;
    };
    const std::vector<Extent> own = space(*algorithm.find_stage(*products.begin()));
    for (const TensorOutput &output : algorithm.outputs) {
        const Stage *stage = algorithm.find_stage(output.stage);
        if (space(*stage) != own || (!products.count(stage->name()) && stage->func.function().has_update_definition())) {
            return false;
        }
        if (std::find(outputs.begin(), outputs.end(), stage->name()) == outputs.end()) {
            outputs.push_back(stage->name());
        }
    }
    // The anchor is what follows a product, where anything does.
    std::stable_partition(outputs.begin(), outputs.end(), [&](const std::string &name) { return !products.count(name); });
    return read_in_place(algorithm, products);
}

std::optional<MatrixProduct> match_matrix_product(const Kernel &kernel, const GpuFacts &facts) {
    if (!facts.warpgroup_multiply || !facts.bulk_copy) {
        return std::nullopt;
    }
    const Algorithm &algorithm = kernel.algorithm;
    MatrixProduct result;
    std::optional<SingleProduct> first;
    for (const Stage &stage : algorithm.stages) {
        if (!stage.func.function().has_update_definition() && !stage.func.function().has_extern_definition()) {
            continue;
        }
        if (first && reduces_rows(stage, *first->stage)) {
            result.row_reductions.push_back(stage.name());
            continue;
        }
        const auto product = match_single(stage, algorithm);
        if (!product || !result.row_reductions.empty()) {
            return std::nullopt;
        }
        if (first) {
            // Products of one left operand, side by side; what is read is told by the tensor, for one kernel reads a tensor in one way.
            const bool alike = product->left.call->name == first->left.call->name && stage.extents == first->stage->extents &&
                               stage.reduction_extents == first->stage->reduction_extents && product->b.variables == first->b.variables &&
                               !product->left.computed && !product->right.computed && !first->left.computed && !first->right.computed;
            if (!alike) {
                return std::nullopt;
            }
        } else {
            first = product;
        }
        result.products.push_back(stage.name());
    }
    if (first) {
        result.computed_rows = first->left.computed;
        result.computed_columns = first->right.computed;
        result.bytes = unit_bytes(first->left.element);
        const auto bytes = [](const FactorRead &read) {
            const auto packed = [](const Expr &place) { return packed_variable(place).second > 1; };
            return read.call->type.bytes() / (std::any_of(read.call->args.begin(), read.call->args.end(), packed) ? 2.0 : 1.0);
        };
        result.row_bytes = bytes(first->left);
        result.column_bytes = bytes(first->right);
    }
    if (!first || !measure(*first, result) || !collect_outputs(kernel, {result.products.begin(), result.products.end()}, result.outputs) ||
        !place_in_anchor(algorithm, result)) {
        return std::nullopt;
    }
    if (!result.row_reductions.empty()) {
        const std::set<std::string> after = stages_after(algorithm, result.row_reductions);
        std::stable_partition(result.outputs.begin(), result.outputs.end(), [&](const std::string &name) { return after.count(name) > 0; });
        result.kept = values_to_keep(algorithm, result.products.front(), result.row_reductions);
    }
    const bool is_float8 = result.bytes == 1 && unit_sum_type(first->left.element).is_float();
    result.sums_apart = is_float8 && loses_bits_of_sums(algorithm, result.k);
    result.ragged = std::any_of(result.outputs.begin(), result.outputs.end(), [&](const std::string &name) {
        return !(mod(result.n * Extent(algorithm.find_stage(name)->func.types()[0].bytes()), 16) == Extent(0));
    });
    return result;
}

}  // namespace tilewright
