#include "lowering/products/matrix_operands.h"

#include <algorithm>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool is_half(const Halide::Type &type) { return (type.is_float() || type.is_bfloat()) && type.bits() == 16; }

constexpr int largest_rank = 5;  // of what the copy unit fetches

class OperandFinder {
public:
    OperandFinder(const Kernel &kernel, const Nest &nest, std::int64_t width, bool allows_tf32, StageValues &values,
                  const tile::Launch &launch, const Refusal &refuse)
        : kernel_(kernel), nest_(nest), width_(width), allows_tf32_(allows_tf32), values_(values), launch_(launch), refuse_(refuse) {}

    MatrixOperands run(const std::vector<int> &products) {
        products_ = {products.begin(), products.end()};
        for (int product : products) {
            add(product);
        }
        name_and_describe();
        return std::move(result_);
    }

private:
    struct Factors {
        MatrixOperand left, right;
        std::vector<std::string> batch;
    };

    void add(int product) {
        const Member &member = *nest_.find_member(product);
        const Stage &stage = kernel_.algorithm.stages[product];
        const auto fold = match_fold(stage.func);
        const bool sums = fold && fold->combiner == Combiner::sum && fold->terms.size() == 1;
        const Expr term = sums ? values_.evaluate(fold->terms[0], member.environment, product) : Expr();
        const auto factors = term.defined() ? factors_of(term) : std::nullopt;
        if (!factors) {
            refuse_("it is no sum of products", "remove tensor_core");
        }
        const auto written = factors_of(values_.evaluate(fold->terms[0], {}, product));
        Factors found{match(factors->first, written ? written->first : Expr(), stage, member),
                      match(factors->second, written ? written->second : Expr(), stage, member),
                      {}};
        if (!multiply_together(found.left.element, found.right.element) || !(stage.func.types()[0] == unit_sum_type(found.left.element))) {
            refuse_("the unit multiplies no such pair of types",
                    "convert both operands to one of float16, bfloat16, float8 and int8, or remove tensor_core");
        }
        if (found.left.element == UnitElement::tf32 && !allows_tf32_) {
            refuse_("the unit would cut its float32 operands to tf32",
                    "add precision(tf32) if 11 bits of each are enough, or remove tensor_core");
        }
        const std::string k = depth_axis(found, member);
        give_roles(found, k);
        if (found.right.value.defined()) {
            refuse_("an operand along the unit's columns is computed from what is read",
                    "turn the tile (a width that only the other operand's axis is split by), or store the operand with compute_root");
        }
        if (result_.right.empty()) {
            result_.k = k;
            result_.type = type_of(found.left);
            result_.sum_type = unit_sum_type(found.left.element);
            result_.batch = found.batch;
            for (const std::string &axis : member.reduction_axes) {
                if (axis != k) {
                    result_.taps.push_back(axis);
                }
            }
            result_.left = found.left;
        } else if (found.left.value.defined() || found.left.pixels || !result_.taps.empty() || member.reduction_axes.size() > 1 ||
                   !same_place(found.left.read, k) || found.left.rows != result_.left.rows || found.left.element != result_.left.element) {
            refuse_("products of one kernel share their left operand", "compute this one at the root");
        }
        result_.right.push_back(found.right);
    }
    static Halide::Type type_of(const MatrixOperand &operand) { return operand.value.defined() ? operand.value.type() : operand.read.type; }

    /// A plain read, pixels that windows read, or a computed value of 16 bits around a read that the copy unit can fetch.
    MatrixOperand match(const Expr &factor, const Expr &written, const Stage &stage, const Member &member) {
        const auto unit = unit_factor(factor);
        MatrixOperand operand;
        operand.element = unit ? unit->element : operand.element;
        if (const auto read = unit ? match_strided_operand(unit->value, nest_, launch_) : std::nullopt;
            read && read->type == unit->value.type()) {
            operand.read = *read;
            for (const auto &[axis, stride] : read->strides) {
                operand.axes.insert(axis);
            }
            return operand;
        }
        operand.pixels = written.defined() ? match_pixel_operand(written, stage, member, nest_, launch_) : std::nullopt;
        if (operand.pixels && is_half(operand.pixels->buffer.types[0])) {
            operand.read.buffer = operand.pixels->buffer;
            operand.read.type = operand.pixels->buffer.types[0];
            operand.element = operand.read.type.is_bfloat() ? UnitElement::bfloat16 : UnitElement::float16;
            operand.axes = operand.pixels->axes();
            return operand;
        }
        if (!unit) {
            refuse_("an operand is of no type that the unit multiplies",
                    "convert it to float16, bfloat16, float8 or int8, or remove tensor_core");
        }
        return computed(*unit, member);
    }
    MatrixOperand computed(const UnitFactor &factor, const Member &member) {
        const std::string k = member.reduction_axes.size() == 1 ? *member.reduction_axes.begin() : "";
        MatrixOperand operand;
        operand.element = factor.element;
        const Expr value = factor.value;
        if (is_half(value.type()) && !k.empty()) {
            visit_reads(value, [&](const hi::Call *call) {
                const tile::Buffer *buffer = launch_.find_buffer(call->name);
                const bool is_input = buffer && buffer->memory == tile::Memory::global && buffer->binding == tile::Buffer::Binding::input;
                const auto place = is_input && buffer->types[0].bits() >= 8 && buffer->types[0].bytes() <= 2
                                       ? match_strided_place(*buffer, call->args, nest_, k)
                                       : std::nullopt;
                if (place && place->packing <= 2 && place->stride(k) == Extent(1) && place->strides.size() > 1 &&
                    !operand.place.defined()) {
                    operand.read = *place;
                    operand.place = call;
                }
            });
        }
        if (!operand.place.defined()) {
            refuse_("an operand is no strided read of a tensor, nor a value of 16 bits computed from one that lies along the terms",
                    "store the operand with compute_root, or remove tensor_core");
        }
        operand.value = value;
        for (const std::string &name : variables_of(value)) {
            if (nest_.find_axis(name)) {
                operand.axes.insert(name);
            }
        }
        return operand;
    }

    /// Of the axes that are summed over, the one that tiles run along: pixels' channels, else one that memory runs along.
    std::string depth_axis(const Factors &f, const Member &member) const {
        for (const MatrixOperand *operand : {&f.left, &f.right}) {
            if (operand->pixels) {
                return operand->pixels->channels;
            }
        }
        for (const MatrixOperand *operand : {&f.left, &f.right}) {
            for (const std::string &axis : member.reduction_axes) {
                if (operand->read.stride(axis) == Extent(1)) {
                    return axis;
                }
            }
        }
        if (member.reduction_axes.empty()) {
            refuse_("it has no terms", "remove tensor_core");
        }
        return *member.reduction_axes.begin();
    }

    /// Whether the operand is what the first product multiplies, with `k` in place of its K.
    bool same_place(const StridedOperand &other, const std::string &k) const {
        StridedOperand first = result_.left.read;
        if (k != result_.k) {
            first.strides[k] = first.stride(result_.k);
            first.strides.erase(result_.k);
        }
        return first.buffer.name == other.buffer.name && first.offset == other.offset && first.strides == other.strides;
    }

    /// Of axes that one operand varies along, the one that is tiled; along the others the second operand stays the same.
    void take_role(Factors &f, std::string &role, const std::string &axis) const {
        if (!role.empty() && tile_extent(nest_, role) == 0) {
            f.batch.push_back(role);
            role.clear();
        }
        if (role.empty()) {
            role = axis;
        } else if (tile_extent(nest_, axis) == 0) {
            f.batch.push_back(axis);
        } else {
            refuse_(fmt::format("axes '{}' and '{}' belong to one operand", role, axis), "fuse them into one axis");
        }
    }

    void give_roles(Factors &f, const std::string &k) {
        for (const tile::Axis &axis : nest_.axes) {
            if (axis.name == k || is_reduction(axis.name)) {
                continue;
            }
            const bool in_left = f.left.axes.count(axis.name) > 0, in_right = f.right.axes.count(axis.name) > 0;
            if (in_left == in_right) {
                f.batch.push_back(axis.name);
                continue;
            }
            take_role(f, in_left ? f.left.rows : f.right.rows, axis.name);
        }
        // A single row: any axis of one place stands for it.
        for (std::string *role : {&f.left.rows, &f.right.rows}) {
            const auto one = std::find_if(f.batch.begin(), f.batch.end(),
                                          [&](const std::string &name) { return nest_.find_axis(name)->extent == Extent(1); });
            if (role->empty() && one != f.batch.end()) {
                *role = *one;
                f.batch.erase(one);
            }
        }
        if (f.left.rows.empty() || f.right.rows.empty()) {
            refuse_("an operand varies along no axis of its own", "remove tensor_core");
        }
        // The unit's columns are the axis along which the output runs, unless only the other one is as wide as its tiles.
        const bool runs_along_left = runs_along(f.left.rows, f.right.rows);
        const std::string &columns = runs_along_left ? f.left.rows : f.right.rows, &rows = runs_along_left ? f.right.rows : f.left.rows;
        const bool one_row = nest_.find_axis(rows)->extent == Extent(1) && tile_extent(nest_, rows) == 0;
        const bool turned = tile_extent(nest_, columns) != width_ && (tile_extent(nest_, rows) == width_ || one_row);
        result_.turned = turned;
        if (runs_along_left != turned) {
            std::swap(f.left, f.right);
        }
    }
    /// Whether the output's memory runs along `axis` rather than `other`; where it runs along neither, whether the axis is the inner one.
    bool runs_along(const std::string &axis, const std::string &other) const {
        const std::vector<Expr> &places = nest_.find_member(nest_.anchor)->places;
        for (const TensorOutput &output : kernel_.algorithm.outputs) {
            for (std::size_t i = 0; output.stage == kernel_.algorithm.stages[nest_.anchor].name() && i < places.size(); ++i) {
                const std::vector<std::string> along = variables_of(places[i]);
                const bool runs = output.meta.strides[i] == Extent(1) && !(output.meta.sizes[i] == Extent(1));
                for (const std::string &name : {axis, other}) {
                    if (runs && std::find(along.begin(), along.end(), name) != along.end()) {
                        return name == axis;
                    }
                }
            }
        }
        return place_of(axis) > place_of(other);
    }
    /// Of a product: others reduce along its columns.
    bool is_reduction(const std::string &axis) const {
        return std::any_of(nest_.members.begin(), nest_.members.end(),
                           [&](const Member &m) { return products_.count(m.stage) > 0 && m.reduction_axes.count(axis) > 0; });
    }
    std::size_t place_of(const std::string &axis) const {
        return std::find_if(nest_.axes.begin(), nest_.axes.end(), [&](const tile::Axis &a) { return a.name == axis; }) - nest_.axes.begin();
    }

    void name_and_describe() {
        result_.left.name = "left";
        describe(result_.left);
        for (std::size_t i = 0; i < result_.right.size(); ++i) {
            result_.right[i].name = i == 0 ? "right" : fmt::format("right_{}", i + 1);
            describe(result_.right[i]);
        }
    }

    /// Dimensions of the operand's descriptor: the unit stride first, then the other of its own, then batches.
    void describe(MatrixOperand &operand) {
        if (operand.pixels) {
            if (const std::string cause = operand.pixels->obstacle(kernel_.algorithm.symbols); !cause.empty()) {
                refuse_(cause, "remove tensor_core");
            }
            return;
        }
        const std::string k = operand.read.strides.count(result_.k) ? result_.k : other_k(operand);
        if (k != result_.k) {
            operand.read.strides[result_.k] = operand.read.stride(k);
            operand.read.strides.erase(k);
        }
        const int bytes = operand.read.type.bytes();
        const bool one_row = nest_.find_axis(operand.rows)->extent == Extent(1);
        if (one_row) {
            operand.read.strides[operand.rows] = ceil_div(nest_.find_axis(result_.k)->extent * Extent(bytes), 16) * Extent(16 / bytes);
        }
        operand.transposed = !(operand.read.stride(result_.k) == Extent(1));
        if (operand.transposed && (one_row || !(operand.read.stride(operand.rows) == Extent(1)))) {
            refuse_(fmt::format("tensor '{}' runs along none of the product's axes", operand.read.buffer.name), "remove tensor_core");
        }
        if (operand.transposed && bytes != 2) {
            refuse_(fmt::format("tensor '{}' does not run along the terms, as the unit wants elements of {} bits", operand.read.buffer.name,
                                8 * bytes),
                    "transpose it with compute_root, or remove tensor_core");
        }
        operand.coordinates =
            operand.transposed ? std::vector<std::string>{operand.rows, result_.k} : std::vector<std::string>{result_.k, operand.rows};
        std::vector<std::string> others = result_.taps;
        others.insert(others.end(), result_.batch.begin(), result_.batch.end());
        for (const std::string &axis : others) {
            if (operand.read.strides.count(axis) && !(nest_.find_axis(axis)->extent == Extent(1))) {
                operand.coordinates.push_back(axis);
            }
        }
        if (operand.coordinates.size() > largest_rank) {
            refuse_("the copy unit knows five dimensions", "fuse the batch axes");
        }
        for (std::size_t i = 1; i < operand.coordinates.size(); ++i) {
            const Extent stride = operand.read.stride(operand.coordinates[i]) * Extent(bytes);
            if (!(mod(stride, 16) == Extent(0))) {
                refuse_(fmt::format("a stride of tensor '{}' is {} bytes, no multiple of 16", operand.read.buffer.name, stride.to_string()),
                        "remove tensor_core");
            }
        }
    }
    std::string other_k(const MatrixOperand &operand) const {
        for (const auto &[axis, stride] : operand.read.strides) {
            if (is_reduction(axis)) {
                return axis;
            }
        }
        refuse_(fmt::format("tensor '{}' does not vary along the terms", operand.read.buffer.name), "remove tensor_core");
        return "";
    }

    const Kernel &kernel_;
    const Nest &nest_;
    std::int64_t width_;
    bool allows_tf32_;
    StageValues &values_;
    const tile::Launch &launch_;
    const Refusal &refuse_;
    std::set<int> products_;
    MatrixOperands result_;
};

}  // namespace

std::int64_t tile_extent(const Nest &nest, const std::string &axis) {
    for (const tile::Leaf &leaf : nest.find_axis(axis)->leaves) {
        if (leaf.level == tile::Level::grid && leaf.stride.is_constant()) {
            return leaf.stride.value();
        }
    }
    return 0;
}

MatrixOperands find_matrix_operands(const Kernel &kernel, const Nest &nest, const std::vector<int> &products, std::int64_t width,
                                    bool allows_tf32, StageValues &values, const tile::Launch &launch, const Refusal &refuse) {
    return OperandFinder(kernel, nest, width, allows_tf32, values, launch, refuse).run(products);
}

}  // namespace tilewright
