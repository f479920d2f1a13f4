#include "lowering/cuda/cudnn_convolution.h"

#include <algorithm>
#include <cmath>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/window.h"
#include "lowering/cuda/engine_match.h"
#include "lowering/nests/stage_expansion.h"
#include "lowering/passes/operation.h"
#include "lowering/products/unit_element.h"

namespace tilewright {

namespace {

namespace hi = Halide::Internal;
using Halide::Expr;

/// How a tensor lies along the axes of the operand that it is: images or outputs, channels, then space; -1 for a dimension that a single
/// place has.
using Dimensions = std::vector<int>;

class Matcher {
public:
    explicit Matcher(const Kernel &kernel) : algorithm_(kernel.algorithm) {}

    GraphEngineStep match() {
        demand(algorithm_.outputs.size() == 1, "it has several outputs");
        const auto reduces = [](const Stage &stage) { return !stage.reduction_extents.empty(); };
        const auto found = std::find_if(algorithm_.stages.begin(), algorithm_.stages.end(), reduces);
        demand(found != algorithm_.stages.end() && std::none_of(found + 1, algorithm_.stages.end(), reduces), "it is not one convolution");
        sums_ = &*found;
        arguments_ = sums_->func.function().args();
        match_windows();
        const Stage *stored = algorithm_.find_stage(algorithm_.outputs[0].stage);
        demand(stored->extents == sums_->extents, "its output has another shape than the convolution");
        match_epilogue(*stored);
        step_.tensors.push_back(engine_output(algorithm_, *stored, output_dimensions_));
        add_missing_height();
        return std::move(step_);
    }

private:
    void match_windows() {
        const auto fold = match_fold(sums_->func);
        demand(fold && fold->combiner == Combiner::sum && fold->scan_axis < 0 && fold->terms.size() == 1, "it is not one convolution");
        const auto factors = factors_of(inline_lets(fold->terms[0]));
        demand(factors.has_value(), "its product has another form");
        const auto window = [&](const Expr &factor) {
            const auto sizes_of = [&](const std::string &name) {
                const int input = input_index(algorithm_, name);
                return input < 0 ? nullptr : &algorithm_.inputs[input].meta.sizes;
            };
            auto read = match_window_read(factor, arguments_, fold->variables, sizes_of);
            demand(read.has_value(), "an operand of the convolution is computed");
            return *read;
        };
        WindowRead pixels = window(factors->first), weights = window(factors->second);
        if (!is_weights(weights)) {
            std::swap(pixels, weights);
        }
        demand(is_weights(weights) && pixels.indices.size() == weights.indices.size() && pixels.indices.size() >= 3 &&
                   pixels.indices.size() <= 5,
               "its operands are not images and weights");
        match_pixels(pixels, weights);
        add_operand(pixels);
        add_operand(weights);
        const DType type = step_.tensors[0].dtype;
        demand(type == step_.tensors[1].dtype && (type == DType::bfloat16 || type == DType::float16),
               "its operands are not of one half-precision type");
    }

    /// One output's weights: [output, channel, taps…].
    static bool is_weights(const WindowRead &read) {
        const auto is_term = [](const WindowIndex &index) {
            return index.pixel.empty() && index.dilation == 1 && index.offset == Extent(0);
        };
        return read.indices.size() >= 3 && read.indices[0].is_plain() && !read.indices[0].pixel.empty() &&
               std::all_of(read.indices.begin() + 1, read.indices.end(), is_term);
    }

    int argument(const std::string &name) const {
        const auto found = std::find(arguments_.begin(), arguments_.end(), name);
        return found == arguments_.end() ? -1 : static_cast<int>(found - arguments_.begin());
    }

    void match_pixels(const WindowRead &pixels, const WindowRead &weights) {
        const WindowIndex &image = pixels.indices[0], &channel = pixels.indices[1];
        demand(image.is_plain() && channel.pixel.empty() && channel.offset == Extent(0) && channel.dilation == 1,
               "its images or channels are read through windows");
        demand(channel.tap == weights.indices[1].tap, "its weights run along other channels");
        output_dimensions_ = {argument(image.pixel), argument(weights.indices[0].pixel)};
        for (std::size_t d = 2; d < pixels.indices.size(); d++) {
            const WindowIndex &place = pixels.indices[d];
            demand(place.tap == weights.indices[d].tap && place.sharers == 1 && place.offset.is_constant() && place.offset.value() <= 0,
                   "its windows have a form that cuDNN does not know");
            output_dimensions_.push_back(argument(place.pixel));
            step_.padding.push_back(-place.offset.value());
            step_.strides.push_back(place.stride);
            step_.dilations.push_back(place.dilation);
        }
        for (int i = 0; i < sums_->rank(); i++) {
            const auto uses = std::count(output_dimensions_.begin(), output_dimensions_.end(), i);
            demand(uses == 1 || (uses == 0 && sums_->extents[i] == Extent(1)),
                   "its output has other axes than images, channels and places");
        }
    }

    void add_operand(const WindowRead &read) {
        const int input = input_index(algorithm_, read.read->name);
        const TensorMeta &meta = algorithm_.inputs[input].meta;
        step_.tensors.push_back({input, meta.dtype, meta.sizes, meta.strides, 0});
    }

    bool reads_sums(const Expr &e) const {
        bool found = false;
        visit_reads(e, [&](const hi::Call *call) { found = found || call->name == sums_->name(); });
        return found;
    }

    void match_epilogue(const Stage &stored) {
        if (stored.name() == sums_->name()) {
            return;
        }
        std::map<std::string, Expr> places;
        const std::vector<std::string> names = stored.func.function().args();
        for (std::size_t i = 0; i < names.size(); i++) {
            places[names[i]] = hi::Variable::make(Halide::Int(32), arguments_[i]);
        }
        add_epilogue(without_conversions(expand_stages(algorithm_, stored.func.function().definition().values()[0], places)));
    }

    /// The steps that lead from the sums to `e`, in float32.
    void add_epilogue(const Expr &e) {
        demand(e.type() == Halide::Float(32), "its epilogue rounds to a narrower type on its way");
        if (const auto *call = e.as<hi::Call>(); call != nullptr && call->name == sums_->name()) {
            for (std::size_t i = 0; i < arguments_.size(); i++) {
                const auto *variable = call->args[i].as<hi::Variable>();
                demand(sums_->extents[i] == Extent(1) || (variable != nullptr && variable->name == arguments_[i]),
                       "its epilogue moves elements");
            }
            return;
        }
        const Operation op = operation_of(e);
        const bool sum = op.name == "add", product = op.name == "mul", relu = op.name == "max";
        demand((sum || product || relu) && reads_sums(op.operands[0]) != reads_sums(op.operands[1]),
               "its epilogue is more than sums, products and ReLUs");
        const int before = reads_sums(op.operands[0]) ? 0 : 1;
        add_epilogue(widened(op.operands[before]));
        const Expr other = without_conversions(op.operands[1 - before]);
        EnginePointwise next;
        next.op = relu ? EnginePointwise::Op::relu : sum ? EnginePointwise::Op::add : EnginePointwise::Op::multiply;
        const double number = float_constant(other);
        demand(!relu || number == 0, "its epilogue is more than sums, products and ReLUs");
        if (std::isnan(number)) {
            next.tensor = add_epilogue_operand(other);
        } else {
            next.number = static_cast<float>(number);
        }
        step_.epilogue.push_back(next);
    }

    /// Below conversions of float32 to itself.
    static Expr widened(Expr e) {
        for (Operation op = operation_of(e); is_float_conversion(e, op) && op.operands[0].type() == e.type(); op = operation_of(e)) {
            e = op.operands[0];
        }
        return e;
    }

    int add_epilogue_operand(const Expr &e) {
        const auto read = plain_read(algorithm_, e);
        demand(read.has_value(), "an operand of its epilogue is computed");
        std::vector<std::string> axes;
        std::vector<Extent> sizes;
        for (const int d : output_dimensions_) {
            axes.push_back(d < 0 ? "" : arguments_[d]);
            sizes.push_back(d < 0 ? Extent(1) : sums_->extents[d]);
        }
        step_.tensors.push_back(engine_tensor(algorithm_, *read, axes, sizes));
        return static_cast<int>(step_.tensors.size()) - 1;
    }

    /// cuDNN has at least two dimensions of space.
    void add_missing_height() {
        if (step_.padding.size() > 1) {
            return;
        }
        for (EngineTensor &tensor : step_.tensors) {
            tensor.strides.insert(tensor.strides.begin() + 2, tensor.strides[2] * tensor.sizes[2]);
            tensor.sizes.insert(tensor.sizes.begin() + 2, Extent(1));
        }
        step_.padding.insert(step_.padding.begin(), 0);
        step_.strides.insert(step_.strides.begin(), 1);
        step_.dilations.insert(step_.dilations.begin(), 1);
    }

    const Algorithm &algorithm_;
    const Stage *sums_ = nullptr;
    std::vector<std::string> arguments_;
    Dimensions output_dimensions_;  ///< arguments of the sums that are images, outputs and places
    GraphEngineStep step_;
};

}  // namespace

std::optional<GraphEngineStep> match_cudnn_convolution(const Kernel &kernel, std::string *why_not) {
    return match_or_reason([&] { return Matcher(kernel).match(); }, why_not);
}

}  // namespace tilewright
