#include "lowering/cuda/matrix_product.h"

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "lowering/cuda/expanded_reads.h"
#include "lowering/passes/index_math.h"
#include "lowering/passes/strided_operand.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

/// What a factor multiplies: a value of 16 bits, around a tensor that the bulk copy unit fetches.
struct FactorRead {
    const hi::Call *call = nullptr;
    Expr value;             ///< keeps the call alive
    bool computed = false;  ///< more than the tensor's element
};
std::optional<FactorRead> read_of(const Expr &factor, const std::string &k, const Algorithm &algorithm) {
    FactorRead result;
    result.value = below_widening(expand_reads(algorithm, factor));
    const Halide::Type type = result.value.type();
    if (!(type.is_float() || type.is_bfloat()) || type.bits() != 16) {
        return std::nullopt;
    }
    const auto *plain = result.value.as<hi::Call>();
    result.computed = !(plain && is_read(plain));
    visit_reads(result.value, [&](const hi::Call *call) {
        const TensorInput *input = algorithm.find_input(call->name);
        bool along_k = false;
        for (std::size_t i = 0; input && i < call->args.size(); ++i) {
            const auto *variable = call->args[i].as<hi::Variable>();
            along_k = along_k || (variable && variable->name == k && input->meta.strides[i] == Extent(1));
        }
        const bool narrow = call->type.bits() >= 8 && call->type.bytes() <= 2 && call->args.size() > 1;
        result.call = !result.call && (!result.computed || (along_k && narrow)) ? call : result.call;
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
    for (std::size_t i = 0; input && i < read->args.size(); ++i) {
        const auto *variable = read->args[i].as<hi::Variable>();
        if (!variable) {
            for (const std::string &name : variables_of(read->args[i])) {
                result.variables.insert(name);
            }
            aligned = aligned && variables_of(read->args[i]).empty();
            continue;
        }
        result.variables.insert(variable->name);
        const Extent &stride = input->meta.strides[i];
        if (input->meta.sizes[i] == Extent(1)) {
            continue;
        }
        unit = unit || stride == Extent(1);
        aligned = aligned && (stride == Extent(1) || mod(stride, per_access) == Extent(0));
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
        !(stage.func.types()[0] == Halide::Float(32)) || stage.rank() == 0) {
        return std::nullopt;
    }
    const Expr term = inline_lets(fold->terms[0]);
    const auto *product = term.as<hi::Mul>();
    const auto left = product ? read_of(product->a, fold->variables[0], algorithm) : std::nullopt;
    const auto right = product ? read_of(product->b, fold->variables[0], algorithm) : std::nullopt;
    if (!left || !right || !(left->value.type() == right->value.type()) || (left->computed && right->computed)) {
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
            result.batch = result.batch * stage.extents[i];
            if (!in_a || !result.rows.empty()) {
                return false;
            }
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
        const auto product = match_single(stage, algorithm);
        if (!product) {
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
        result.row_bytes = first->left.call->type.bytes();
        result.column_bytes = first->right.call->type.bytes();
    }
    if (!first || !measure(*first, result) ||
        !collect_outputs(kernel, {result.products.begin(), result.products.end()}, result.outputs) || !place_in_anchor(algorithm, result)) {
        return std::nullopt;
    }
    return result;
}

}  // namespace tilewright
