#include "lowering/fusion/thin_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/window.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

constexpr std::int64_t most_channels = 15;  // from 16 on a step takes the channels of one tap
constexpr std::int64_t copy_alignment = 8;  // elements of two bytes: where a pixel may begin
constexpr std::int64_t depth_of_step = 64;

Expr clamp_to(const Expr &place, const Expr &count) { return Halide::max(Halide::min(place, count - 1), 0); }

/// y(n, o, p, q) = sum over c, k, l of x(n, c, p.., q * stride + l + offset) * w(o, c, k, l)
class ThinConvolution {
public:
    ThinConvolution(const Algorithm &algorithm, const Stage &stage) : algorithm_(algorithm), stage_(stage) {}

    bool match() {
        const auto fold =
            stage_.func.function().has_update_definition() && classify(stage_) == Form::window ? match_fold(stage_.func) : std::nullopt;
        if (!fold || fold->combiner != Combiner::sum || fold->terms.size() != 1 || !(stage_.func.types()[0] == Halide::Float(32)) ||
            stage_.rank() != 4 || fold->variables.size() != 3) {
            return false;
        }
        const Expr term = inline_lets(fold->terms[0]);
        const auto *product = term.as<hi::Mul>();
        const auto x = product ? read(product->a, fold->variables) : std::nullopt,
                   w = product ? read(product->b, fold->variables) : std::nullopt;
        if (!x || !w || x->indices.size() != 4 || w->indices.size() != 4 || !is_half(x->read->type) || !(x->read->type == w->read->type)) {
            return false;
        }
        const std::vector<std::string> arguments = stage_.func.function().args();
        const auto is_at = [](const WindowIndex &index, const std::string &pixel, const std::string &tap) {
            return index.pixel == pixel && index.tap == tap && index.dilation == 1 &&
                   (pixel.empty() || tap.empty() ? index.offset == Extent(0) : true);
        };
        const std::vector<std::string> &r = fold->variables;
        const bool fits = is_at(x->indices[0], arguments[0], "") && x->indices[0].stride == 1 && is_at(x->indices[1], "", r[0]) &&
                          x->indices[2].pixel == arguments[2] && x->indices[2].tap == r[1] && is_at(x->indices[3], arguments[3], r[2]) &&
                          is_at(w->indices[0], arguments[1], "") && is_at(w->indices[1], "", r[0]) && is_at(w->indices[2], "", r[1]) &&
                          is_at(w->indices[3], "", r[2]);
        const auto channels = stage_.reduction_extents[0].constant(), taps = stage_.reduction_extents[2].constant();
        image_ = fits ? algorithm_.find_input(x->read->name) : nullptr;
        weights_ = fits ? algorithm_.find_input(w->read->name) : nullptr;
        rows_ = x->indices[2];
        columns_ = x->indices[3];
        const auto is_apart = [&](const WindowIndex &index, const Extent &window) {
            return Extent(index.stride) == window && index.dilation == 1 && index.offset == Extent(0);
        };
        if (!image_ || !weights_ || !channels || !taps) {
            return false;
        }
        is_patched_ = is_apart(rows_, stage_.reduction_extents[1]) && is_apart(columns_, stage_.reduction_extents[2]) &&
                      mod(patch_size(), copy_alignment) == Extent(0) && weights_->meta.is_contiguous();
        if (is_patched_ || *channels > most_channels) {
            return is_patched_;
        }
        channels_ = static_cast<int>(*channels);
        for (pitch_ = channels_; pitch_ * columns_.stride % copy_alignment != 0; ++pitch_) {
        }
        width_ = static_cast<int>(*taps) * pitch_;
        return width_ <= depth_of_step;
    }

    /// Windows that stand apart are a tensor of their own: the convolution is a product.
    bool is_patched() const { return is_patched_; }
    Extent patch_size() const { return product(stage_.reduction_extents); }

    const TensorInput &image() const { return *image_; }
    const TensorInput &weights() const { return *weights_; }
    std::string layout() const {
        if (is_patched_) {
            return fmt::format("{}_{}", rows_.stride, columns_.stride);
        }
        return fmt::format("{}_{}_{}_{}", pitch_, columns_.stride, columns_.offset.to_string(), row_length().to_string());
    }

    /// Channels of a pixel side by side, pitch_ apart; zeros left and right of the image.
    InputCopy copy_of_image(const std::string &to) const {
        const std::vector<Halide::Var> at = argument_vars(3);
        const Extent &width = image_->meta.sizes[3];
        const Expr channel = at[2] % pitch_, place = at[2] / pitch_ + to_halide(columns_.offset);
        const std::vector<Extent> sizes{image_->meta.sizes[0], image_->meta.sizes[2], row_length()};
        return copy(*image_, to, TensorMeta::contiguous(image_->meta.dtype, sizes), at,
                    {at[0], Halide::min(channel, channels_ - 1), at[1], clamp_to(place, to_halide(width))},
                    channel < channels_ && place >= 0 && place < to_halide(width));
    }
    InputCopy copy_of_weights(const std::string &to) const {
        const std::vector<Halide::Var> at = argument_vars(3);
        const Expr channel = at[2] % pitch_;
        const Extent row = (width_ + copy_alignment - 1) / copy_alignment * copy_alignment;
        TensorMeta meta = TensorMeta::contiguous(weights_->meta.dtype, {weights_->meta.sizes[0], weights_->meta.sizes[2], width_});
        meta.strides = {meta.sizes[1] * row, row, 1};
        return copy(*weights_, to, meta, at, {at[0], Halide::min(channel, channels_ - 1), at[1], at[2] / pitch_}, channel < channels_);
    }
    Stage rewritten(const Halide::ImageParam &image, const Halide::ImageParam &weights) const {
        const std::vector<Halide::Var> at = argument_vars(4);
        const Extent &height = image_->meta.sizes[2], &taps = stage_.reduction_extents[1];
        const Halide::RDom domain = reduction_domain({Expr(width_), to_halide(taps)});
        const Expr row = at[2] * static_cast<int>(rows_.stride) + domain[1] * static_cast<int>(rows_.dilation) + to_halide(rows_.offset);
        const Expr x = math::convert(Halide::Float(32), read_at(image, {at[0], clamp_to(row, to_halide(height)),
                                                                        at[3] * static_cast<int>(columns_.stride * pitch_) + domain[0]}));
        const Expr padded = hi::Select::make(row >= 0 && row < to_halide(height), x, hi::FloatImm::make(Halide::Float(32), 0.0));
        Stage result = stage_;
        result.func = named_func(stage_.name());
        result.reduction_extents = {width_, taps};
        define_reduction(result.func, at, Combiner::sum,
                         {math::mul(padded, math::convert(Halide::Float(32), read_at(weights, {at[1], domain[1], domain[0]})))}, domain);
        return result;
    }

    /// [n, p, q, (c, k, l)]: terms in the order of the weights.
    InputCopy patches(const std::string &to) const {
        const std::vector<Halide::Var> at = argument_vars(4);
        const std::vector<Extent> sizes{stage_.extents[0], stage_.extents[2], stage_.extents[3], patch_size()};
        const std::vector<Expr> term = places_in_patch(at[3]);
        const Expr row = at[1] * static_cast<int>(rows_.stride) + term[1], column = at[2] * static_cast<int>(columns_.stride) + term[2];
        return copy(*image_, to, TensorMeta::contiguous(image_->meta.dtype, sizes), at, {at[0], term[0], row, column}, Expr());
    }
    /// The weights as a matrix, and the product that takes the convolution's place.
    std::vector<Stage> multiplied(const Halide::ImageParam &patches) const {
        Stage matrix = stage_;
        matrix.op = "prims.reshape";
        matrix.func = named_func(stage_.name() + "_weights");
        matrix.extents = {stage_.extents[1], patch_size()};
        matrix.reduction_extents.clear();
        const std::vector<Halide::Var> place = argument_vars(2);
        const std::vector<Expr> term = places_in_patch(place[1]);
        matrix.func(place) = read_at(weights_->param, {place[0], term[0], term[1], term[2]});

        const std::vector<Halide::Var> at = argument_vars(4);
        const Halide::RDom domain = reduction_domain({to_halide(patch_size())});
        const Halide::Type sums = Halide::Float(32);
        Stage result = stage_;
        result.func = named_func(stage_.name());
        result.reduction_extents = {patch_size()};
        define_reduction(result.func, at, Combiner::sum,
                         {math::mul(math::convert(sums, read_at(patches, {at[0], at[2], at[3], domain[0]})),
                                    math::convert(sums, matrix.func(at[1], domain[0])))},
                         domain);
        return {matrix, result};
    }

private:
    std::vector<Expr> places_in_patch(const Expr &term) const {
        const Expr rows = to_halide(stage_.reduction_extents[1]), columns = to_halide(stage_.reduction_extents[2]);
        return {term / (rows * columns), term / columns % rows, term % columns};
    }
    static bool is_half(const Halide::Type &type) { return (type.is_float() || type.is_bfloat()) && type.bits() == 16; }
    static Expr read_at(const Halide::ImageParam &from, const std::vector<Expr> &indices) { return tilewright::read(from, indices); }
    std::optional<WindowRead> read(const Expr &factor, const std::vector<std::string> &variables) const {
        return match_window_read(factor, stage_.func.function().args(), variables, [&](const std::string &name) {
            const TensorInput *input = algorithm_.find_input(name);
            return input ? &input->meta.sizes : nullptr;
        });
    }
    /// Of the image's copy, as far as the last window reaches.
    Extent row_length() const {
        const Extent pixels = (stage_.extents[3] - 1) * Extent(columns_.stride) + stage_.reduction_extents[2];
        return ceil_div(pixels * Extent(pitch_), copy_alignment) * Extent(copy_alignment);
    }

    static InputCopy copy(const TensorInput &from, const std::string &to, const TensorMeta &written, const std::vector<Halide::Var> &at,
                          const std::vector<Expr> &place, const Expr &inside) {
        InputCopy result{from.name(), to, {}};
        TensorMeta meta = from.meta;
        meta.offset = 0;
        const Halide::Type type = to_halide(meta.dtype);
        const TensorInput input{Halide::ImageParam(type, meta.rank(), "in0"), meta, "in0"};
        Halide::Func func = named_func("copy");
        const Expr value = read_at(input.param, place);
        func(at) =
            inside.defined() ? hi::Select::make(inside, value, math::convert(type, hi::FloatImm::make(Halide::Float(32), 0.0))) : value;
        result.algorithm.inputs = {input};
        result.algorithm.stages = {Stage{func, written.sizes, {}, "repack", ""}};
        result.algorithm.outputs = {TensorOutput{"out0", func.name(), 0, written}};
        return result;
    }

    const Algorithm &algorithm_;
    const Stage &stage_;
    const TensorInput *image_ = nullptr, *weights_ = nullptr;
    WindowIndex rows_, columns_;
    int channels_ = 0;
    int pitch_ = 0;  ///< elements from pixel to pixel in the copy
    int width_ = 0;  ///< terms of a row of taps
    bool is_patched_ = false;
};

}  // namespace

std::vector<InputCopy> widen_thin_channels(Algorithm &algorithm) {
    std::vector<InputCopy> copies;
    std::set<std::string> known;
    const Algorithm original = algorithm;
    const auto add = [&](const InputCopy &copy) {
        const TensorMeta &meta = copy.algorithm.outputs[0].meta;
        if (known.insert(copy.to).second) {
            copies.push_back(copy);
            algorithm.inputs.push_back({Halide::ImageParam(to_halide(meta.dtype), meta.rank(), copy.to), meta, copy.to});
        }
        return algorithm.find_input(copy.to)->param;
    };
    algorithm.stages.clear();
    for (const Stage &stage : original.stages) {
        ThinConvolution convolution(original, stage);
        if (!convolution.match()) {
            algorithm.stages.push_back(stage);
        } else if (convolution.is_patched()) {
            const std::vector<Stage> stages = convolution.multiplied(
                add(convolution.patches(fmt::format("{}_patches_{}", convolution.image().name(), convolution.layout()))));
            algorithm.stages.insert(algorithm.stages.end(), stages.begin(), stages.end());
        } else {
            const Halide::ImageParam image =
                add(convolution.copy_of_image(fmt::format("{}_rows_{}", convolution.image().name(), convolution.layout())));
            const Halide::ImageParam weights =
                add(convolution.copy_of_weights(fmt::format("{}_rows_{}", convolution.weights().name(), convolution.layout())));
            algorithm.stages.push_back(convolution.rewritten(image, weights));
        }
    }
    return copies;
}

}  // namespace tilewright
