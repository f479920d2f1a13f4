// What decomposition rules build with: a function for each core operator, which adds a node and computes its meta.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/error.h"
#include "dsl/graph/program.h"

namespace tilewright {

using Extents = std::vector<Extent>;
using Dims = std::vector<int>;
/// A Python number: bool, int (possibly symbolic) or float.
using Number = std::variant<bool, Extent, double>;

double to_double(const Number &number);  ///< InternalError where it is symbolic
bool is_zero(const Number &number);
bool is_one(const Number &number);

/// An operand of an elementwise operator: a tensor, or a number that takes the other operand's shape and type.
struct Operand {
    std::variant<Node *, Number> value;
    Operand(Node *node) : value(node) {}                             // NOLINT: operands convert
    Operand(Number number) : value(std::move(number)) {}             // NOLINT
    Operand(double number) : value(Number(number)) {}                // NOLINT
    Operand(int number) : value(Number(Extent(number))) {}           // NOLINT
    Operand(std::int64_t number) : value(Number(Extent(number))) {}  // NOLINT
    Operand(const Extent &number) : value(Number(number)) {}         // NOLINT
    Operand(bool number) : value(Number(number)) {}                  // NOLINT

    Node *node() const {
        const auto *node = std::get_if<Node *>(&value);
        return node ? *node : nullptr;
    }
    const Number &number() const { return std::get<Number>(value); }
};

/// What a rule gives back: one node, or one for each of the operator's results; nullptr for a result that is never computed.
struct Results : std::vector<Node *> {
    Results(Node *node) : std::vector<Node *>{node} {}  // NOLINT: one result converts
    Results(std::initializer_list<Node *> nodes) : std::vector<Node *>(nodes) {}
    Results(std::vector<Node *> nodes) : std::vector<Node *>(std::move(nodes)) {}  // NOLINT
};

DType dtype_of(const Node *node);
const Extents &sizes_of(const Node *node);
int rank_of(const Node *node);
/// A non-negative dimension; `rank` 0 counts as 1, as in PyTorch. UserError where it is out of range.
int wrap_dim(std::int64_t dim, int rank);
Dims all_dims(int rank);
/// Equal, or both symbolic expressions that may be equal: torch.export has checked the program's sizes already.
bool may_equal(const Extent &a, const Extent &b);
/// PyTorch's broadcasting of shapes. UserError where they do not fit.
Extents broadcast_shapes(const Extents &a, const Extents &b);

/// Adds core nodes to the end of a graph. Trivial ones (a conversion to the same type, a view to the same shape, …) return their
/// operand; equal views, conversions and constants are built once; a value without elements is a constant.
class Builder {
public:
    explicit Builder(Graph &graph) : graph_(graph) {}

    Graph &graph() { return graph_; }
    /// New nodes are named after this instruction, whose module path they take over.
    void set_origin(const Node &origin);
    /// Replaces an ATen operator by its rule: how one rule uses another. `meta` is what PyTorch says of its result, where known.
    Results apply(const std::string &target, std::vector<NamedArgument> arguments, Meta meta = {});

    // Pointwise. Operands broadcast to their common shape; all have one type.
    Node *convert(Node *a, DType type, bool written_by_program = false);
    Node *to_compute(Node *a);  ///< to compute_type of its own type
    Node *unary(std::string_view name, Node *a);
    Node *binary(std::string_view name, Operand a, Operand b);
    Node *where(Node *condition, Operand a, Operand b);  ///< also of float16 and bfloat16
    Node *full(const Extents &size, const Number &value, DType type);
    Node *iota(const Extent &size, const Extent &start, const Extent &step, DType type);
    Node *iota(const Extent &size, DType type = DType::int64) { return iota(size, 0, 1, type); }

    Node *add(Operand a, Operand b) { return binary("add", a, b); }
    Node *sub(Operand a, Operand b) { return binary("sub", a, b); }
    Node *mul(Operand a, Operand b) { return binary("mul", a, b); }
    Node *div(Operand a, Operand b) { return binary("div", a, b); }
    Node *div_floor(Operand a, Operand b) { return binary("div_floor", a, b); }
    Node *maximum(Operand a, Operand b) { return binary("maximum", a, b); }
    Node *minimum(Operand a, Operand b) { return binary("minimum", a, b); }
    Node *eq(Operand a, Operand b) { return binary("eq", a, b); }
    Node *ne(Operand a, Operand b) { return binary("ne", a, b); }
    Node *lt(Operand a, Operand b) { return binary("lt", a, b); }
    Node *le(Operand a, Operand b) { return binary("le", a, b); }
    Node *gt(Operand a, Operand b) { return binary("gt", a, b); }
    Node *ge(Operand a, Operand b) { return binary("ge", a, b); }
    Node *logical_and(Node *a, Node *b) { return binary("bitwise_and", a, b); }
    Node *logical_or(Node *a, Node *b) { return binary("bitwise_or", a, b); }
    Node *exp(Node *a) { return unary("exp", a); }
    Node *log(Node *a) { return unary("log", a); }
    Node *sqrt(Node *a) { return unary("sqrt", a); }
    Node *rsqrt(Node *a) { return unary("rsqrt", a); }
    Node *tanh(Node *a) { return unary("tanh", a); }
    Node *neg(Node *a) { return unary("neg", a); }
    Node *abs(Node *a) { return unary("abs", a); }
    Node *floor(Node *a) { return unary("floor", a); }
    Node *isnan(Node *a) { return unary("isnan", a); }
    Node *logical_not(Node *a) { return unary("logical_not", a); }
    Node *sigmoid(Node *a);  ///< 1 / (1 + exp(-a))

    // Views.
    Node *broadcast(Node *a, const Extents &size);  ///< torch.expand to the whole shape
    Node *broadcast_in_dim(Node *a, const Extents &size, const Dims &dims);
    Node *reshape(Node *a, const Extents &size);
    Node *flatten(Node *a) { return reshape(a, {sizes_of(a).empty() ? Extent(1) : product(sizes_of(a))}); }
    Node *permute(Node *a, const Dims &dims);
    Node *transpose(Node *a, int dim0, int dim1);
    Node *unsqueeze(Node *a, int dim);
    Node *squeeze(Node *a, const Dims &dims);  ///< removes exactly these
    Node *slice(Node *a, int dim, const Extent &start, const Extent &end, const Extent &step = 1);
    Node *select(Node *a, int dim, const Extent &index);  ///< 0 <= index < size
    Node *flip(Node *a, const Dims &dims);
    Node *as_strided(Node *a, const Extents &size, const Extents &stride, const Extent &offset);
    Node *cat(const std::vector<Node *> &tensors, int dim);
    Node *pad(Node *a, const Extents &low, const Extents &high, const Number &value);

    // Reductions and scans. `keep` leaves reduced dims with size 1.
    Node *reduce(std::string_view name, Node *a, const Dims &dims, bool keep = false);
    Node *sum(Node *a, const Dims &dims, bool keep = false) { return reduce("sum", a, dims, keep); }
    Node *amax(Node *a, const Dims &dims, bool keep = false) { return reduce("amax", a, dims, keep); }
    Node *amin(Node *a, const Dims &dims, bool keep = false) { return reduce("amin", a, dims, keep); }
    Node *any(Node *a, const Dims &dims, bool keep = false) { return reduce("any", a, dims, keep); }
    Node *mean(Node *a, const Dims &dims, bool keep = false);
    Node *logsumexp(Node *a, const Dims &dims, bool keep = false) { return reduce("logsumexp", a, dims, keep); }
    Node *arg_reduce(std::string_view name, Node *a, int dim);  ///< argmin, argmax
    std::pair<Node *, Node *> reduce_with_index(std::string_view name, Node *a, int dim);
    std::pair<Node *, Node *> var_mean(Node *a, const Dims &dims, double correction, bool keep = false);
    Node *scan(std::string_view name, Node *a, int dim);  ///< cumsum, cumprod, logcumsumexp
    std::pair<Node *, Node *> scan_with_index(std::string_view name, Node *a, int dim);

    // Contractions and windows.
    Node *dot(Node *a, Node *b, DType out);
    struct Convolution {
        Extents stride, padding, dilation;
        std::int64_t groups = 1;
    };
    Node *convolution(Node *input, Node *weight, const Convolution &how, DType out);
    std::pair<Node *, Node *> pool_max(Node *a, const Extents &kernel, const Extents &stride, const Extents &padding,
                                       const Extents &dilation, const Extents &out);
    Node *pool_sum(Node *a, const Extents &kernel, const Extents &stride, const Extents &padding, const Extents &out);

    // Indexing. `indices` has an entry, perhaps nullptr, for each of a's dims.
    Node *gather_nd(Node *a, std::vector<Node *> indices, bool wrap);
    Node *gather(Node *a, int dim, Node *index);
    Node *scatter(Node *a, int dim, Node *index, Node *source, std::string_view reduce);
    Node *index_put(Node *a, std::vector<Node *> indices, Node *values, bool accumulate, bool wrap);
    /// The first `count` of each sorted row; without it all.
    std::pair<Node *, Node *> sort(Node *a, int dim, bool descending, const std::optional<Extent> &count = {});
    /// Shape of gather_nd's result.
    static Extents gather_nd_shape(const Node *a, const std::vector<Node *> &indices);

private:
    Node *emit(std::string target, std::vector<NamedArgument> arguments, DType type, Extents size);
    std::pair<Node *, Node *> emit_pair(std::string target, std::vector<NamedArgument> arguments, TensorMeta first, TensorMeta second);
    Node *once(std::string target, std::vector<NamedArgument> arguments, DType type, Extents size);
    Node *operand(const Operand &operand, const Extents &size, DType type);

    Graph &graph_;
    std::string origin_name_;
    std::string module_path_;
    std::unordered_map<std::string, Node *> built_;
};

Argument to_argument(const Extents &extents);
Argument to_argument(const Dims &dims);
Argument to_argument(const std::vector<Node *> &nodes);  ///< nullptr becomes None
Argument to_argument(const Number &number);

}  // namespace tilewright
