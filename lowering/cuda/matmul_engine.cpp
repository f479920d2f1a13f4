#include "lowering/cuda/matmul_engine.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cuda/engine_match.h"

namespace tilewright {

namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

Expr without_conversion(Expr e) {
    while (true) {
        if (const auto *cast = e.as<hi::Cast>()) {
            e = cast->value;
        } else if (const auto *call = e.as<hi::Call>(); call != nullptr && math::primitive_name(call) == "convert") {
            e = call->args[0];
        } else {
            return e;
        }
    }
}

/// The two operands of a sum, product or maximum, however it is written.
std::optional<std::pair<Expr, Expr>> operands(const Expr &e, std::string_view primitive) {
    if (const auto *op = e.as<hi::Mul>(); op != nullptr && primitive == "mul") {
        return std::pair(op->a, op->b);
    }
    if (const auto *op = e.as<hi::Add>(); op != nullptr && primitive == "add") {
        return std::pair(op->a, op->b);
    }
    if (const auto *op = e.as<hi::Call>(); op != nullptr && op->args.size() == 2 &&
                                           (math::primitive_name(op) == primitive || op->name == "strict_" + std::string(primitive))) {
        return std::pair(op->args[0], op->args[1]);
    }
    return std::nullopt;
}

/// A read of a tensor or a stage at single variables.
struct PlainRead {
    std::string name;
    std::vector<std::string> variables;
};
std::optional<PlainRead> plain_read(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    if (call == nullptr || (call->call_type != hi::Call::Halide && call->call_type != hi::Call::Image)) {
        return std::nullopt;
    }
    PlainRead read{call->name, {}};
    for (const Expr &index : call->args) {
        const auto *variable = index.as<hi::Variable>();
        if (variable == nullptr) {
            return std::nullopt;
        }
        read.variables.push_back(variable->name);
    }
    return read;
}

std::vector<std::string> names_of(const Stage &stage) {
    std::vector<std::string> names;
    for (const Halide::Var &argument : stage.func.args()) {
        names.push_back(argument.name());
    }
    return names;
}

/// One operand: which input, and the stride of each variable that it is read at.
struct Operand {
    int input = -1;
    DType dtype = DType::float32;
    std::map<std::string, Extent> strides;

    bool varies(const std::string &variable) const { return strides.count(variable) != 0; }
};

class Matcher {
public:
    explicit Matcher(const Kernel &kernel) : algorithm_(kernel.algorithm) {}

    MatmulEngineStep match() {
        demand(algorithm_.outputs.size() == 1, "it has several outputs");
        std::size_t dot = 0;
        while (dot < algorithm_.stages.size() && classify(algorithm_.stages[dot]) != Form::contraction) {
            note_operand_conversion(algorithm_.stages[dot]);
            dot++;
        }
        demand(dot < algorithm_.stages.size(), "it holds no product");
        match_product(algorithm_.stages[dot]);
        value_ = algorithm_.stages[dot].name();
        for (std::size_t s = dot + 1; s < algorithm_.stages.size(); s++) {
            match_epilogue(algorithm_.stages[s]);
        }
        const TensorOutput &output = algorithm_.outputs[0];
        demand(output.stage == value_, "its output is not what the product ends in");
        step_.output_type = output.meta.dtype;
        const bool own = step_.output_type == step_.input_type;
        demand(own || (step_.output_type == DType::float32 && step_.input_type != DType::float64),
               "its output has another type than its operands");
        demand(step_.bias < 0 || bias_type_ == step_.output_type, "its bias has another type than its output");
        demand(output.meta.offset == Extent(0), "its output starts inside a tensor");
        place_output(algorithm_.stages[dot], output.meta);
        return step_;
    }

private:
    /// Stages before the product may only convert an input, element by element.
    void note_operand_conversion(const Stage &stage) {
        const auto terms = terms_of(stage);
        const auto read = terms.size() == 1 ? plain_read(without_conversion(terms[0])) : std::nullopt;
        demand(read && input_index(algorithm_, read->name) >= 0 && read->variables == names_of(stage),
               "it computes something before the product");
        conversions_[stage.name()] = read->name;
    }

    std::string source_of(const std::string &name) const {
        const auto found = conversions_.find(name);
        return found == conversions_.end() ? name : found->second;
    }

    Operand operand(const Expr &factor) const {
        const auto read = plain_read(without_conversion(factor));
        demand(read.has_value(), "an operand of the product is computed");
        Operand result;
        result.input = input_index(algorithm_, source_of(read->name));
        demand(result.input >= 0, "an operand of the product is computed");
        const TensorMeta &meta = algorithm_.inputs[result.input].meta;
        result.dtype = meta.dtype;
        for (std::size_t d = 0; d < read->variables.size(); d++) {
            demand(!result.strides.count(read->variables[d]), "an operand is read along a diagonal");
            result.strides[read->variables[d]] = meta.strides[d];
        }
        return result;
    }

    void match_product(const Stage &stage) {
        const std::optional<Fold> fold = match_fold(stage.func);
        demand(fold && fold->combiner == Combiner::sum && fold->terms.size() == 1 && fold->variables.size() == 1,
               "its product sums over several axes");
        const auto factors = operands(without_conversion(fold->terms[0]), "mul");
        demand(factors.has_value(), "its product has another form");
        Operand a = operand(factors->first);
        Operand b = operand(factors->second);
        const std::vector<std::string> arguments = names_of(stage);
        demand(arguments.size() >= 2, "its product has a single row or column");
        const std::string m = arguments[arguments.size() - 2], n = arguments.back(), k = fold->variables[0];
        if (a.varies(n) && !a.varies(m)) {
            std::swap(a, b);
        }
        demand(a.varies(m) && !a.varies(n) && b.varies(n) && !b.varies(m) && a.varies(k) && b.varies(k),
               "its rows and columns are not one axis each");
        demand(a.dtype == b.dtype, "its operands have two types");
        demand(a.dtype == DType::bfloat16 || a.dtype == DType::float16 || a.dtype == DType::float32 || a.dtype == DType::float64,
               "its operands are no floating-point numbers");
        step_.a = a.input;
        step_.b = b.input;
        step_.input_type = a.dtype;
        step_.m = stage.extents[arguments.size() - 2];
        step_.n = stage.extents.back();
        step_.k = stage.reduction_extents[0];
        place_operand(a, m, k, step_.transpose_a, step_.a_row_stride);
        place_operand(b, k, n, step_.transpose_b, step_.b_row_stride);
        const std::vector<std::string> batch(arguments.begin(), arguments.end() - 2);
        const std::vector<Extent> sizes(stage.extents.begin(), stage.extents.end() - 2);
        step_.batch = product(sizes);
        step_.a_batch_stride = batch_stride(a, batch, sizes);
        step_.b_batch_stride = batch_stride(b, batch, sizes);
    }

    /// `rows` x `columns` as they are, or with columns lying apart: transposed.
    static void place_operand(const Operand &operand, const std::string &rows, const std::string &columns, bool &transpose,
                              Extent &row_stride) {
        if (operand.strides.at(columns) == Extent(1)) {
            transpose = false;
            row_stride = operand.strides.at(rows);
        } else {
            demand(operand.strides.at(rows) == Extent(1), "an operand is contiguous along neither axis");
            transpose = true;
            row_stride = operand.strides.at(columns);
        }
        demand(!row_stride.is_constant() || row_stride.value() > 0, "an operand repeats its rows");
    }

    static Extent batch_stride(const Operand &operand, const std::vector<std::string> &batch, const std::vector<Extent> &sizes) {
        std::vector<Extent> strides;
        for (const std::string &variable : batch) {
            strides.push_back(operand.varies(variable) ? operand.strides.at(variable) : Extent(0));
        }
        return joined_stride(strides, sizes);
    }

    /// The stride of the axes as one.
    static Extent joined_stride(const std::vector<Extent> &strides, const std::vector<Extent> &sizes) {
        for (std::size_t d = 0; d + 1 < strides.size(); d++) {
            demand(strides[d] == strides[d + 1] * sizes[d + 1], "its batch axes do not join to one");
        }
        return strides.empty() ? Extent(0) : strides.back();
    }

    void match_epilogue(const Stage &stage) {
        const auto terms = terms_of(stage);
        demand(classify(stage) == Form::pointwise && terms.size() == 1, "more than an epilogue follows the product");
        const std::vector<std::string> arguments = names_of(stage);
        const auto is_value = [&](const Expr &e) {
            const auto read = plain_read(without_conversion(e));
            return read && read->name == value_ && read->variables == arguments;
        };
        const Expr term = terms[0];
        if (is_value(term)) {
            value_ = stage.name();
            return;
        }
        if (const auto sum = operands(without_conversion(term), "add")) {
            const Expr other = is_value(sum->first) ? sum->second : sum->first;
            const auto read = plain_read(without_conversion(other));
            const bool is_bias =
                (is_value(sum->first) || is_value(sum->second)) && read && read->variables == std::vector{arguments.back()};
            const int input = is_bias ? input_index(algorithm_, source_of(read->name)) : -1;
            demand(input >= 0 && step_.bias < 0 && step_.epilogue.empty() && algorithm_.inputs[input].meta.strides.back() == Extent(1),
                   "something else than a bias is added to the product");
            step_.bias = input;
            bias_type_ = algorithm_.inputs[input].meta.dtype;
            value_ = stage.name();
            return;
        }
        if (const auto larger = operands(without_conversion(term), "maximum")) {
            const Expr other = is_value(larger->first) ? larger->second : larger->first;
            demand((is_value(larger->first) || is_value(larger->second)) && hi::is_const_zero(other) && step_.epilogue.empty(),
                   "the epilogue is no ReLU");
            step_.epilogue = "relu";
            value_ = stage.name();
            return;
        }
        if (const auto scaled = operands(without_conversion(term), "mul")) {
            const Expr other = is_value(scaled->first) ? scaled->second : scaled->first;
            const auto *factor = other.as<hi::FloatImm>();
            demand((is_value(scaled->first) || is_value(scaled->second)) && factor != nullptr && step_.bias < 0 && step_.epilogue.empty(),
                   "the product is multiplied by something else than a number");
            step_.alpha *= static_cast<float>(factor->value);
            value_ = stage.name();
            return;
        }
        const auto read = plain_read(without_conversion(term));
        demand(read && input_index(algorithm_, read->name) >= 0, "the epilogue is more than a factor, a bias and a ReLU");
        note_operand_conversion(stage);  // of the bias
    }

    void place_output(const Stage &stage, const TensorMeta &meta) {
        const std::size_t rank = stage.extents.size();
        demand(meta.strides.size() == rank && meta.strides.back() == Extent(1), "its output's rows are not contiguous");
        step_.d = static_cast<int>(algorithm_.inputs.size());
        step_.d_row_stride = meta.strides[rank - 2];
        step_.d_batch_stride =
            joined_stride({meta.strides.begin(), meta.strides.end() - 2}, {stage.extents.begin(), stage.extents.end() - 2});
    }

    const Algorithm &algorithm_;
    MatmulEngineStep step_;
    std::map<std::string, std::string> conversions_;  ///< stages that only convert an input
    std::string value_;                               ///< the stage that holds the product so far
    DType bias_type_ = DType::float32;
};

}  // namespace

std::optional<MatmulEngineStep> match_matmul(const Kernel &kernel, std::string *why_not) {
    return match_or_reason([&] { return Matcher(kernel).match(); }, why_not);
}

bool is_large_float_product(const Kernel &kernel) {
    constexpr std::int64_t least_side = 16, least_products = 1 << 24;
    const std::optional<MatmulEngineStep> step = match_matmul(kernel);
    if (!step || (step->input_type != DType::float32 && step->input_type != DType::float64)) {
        return false;
    }
    const auto least = [&](const Extent &e) { return e.bounds(kernel.algorithm.symbols).min; };
    const std::int64_t m = least(step->m), n = least(step->n);
    return m >= least_side && n >= least_side &&
           static_cast<double>(m) * static_cast<double>(n * least(step->k) * least(step->batch)) >= least_products;
}

}  // namespace tilewright
