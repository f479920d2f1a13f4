#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "dsl/algorithm/math.h"
#include "lowering/passes/exact_conversions.h"
#include "lowering/passes/passes.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;
namespace hi = Halide::Internal;

bool is_narrow_float(const Halide::Type &type) { return type.is_float() && type.bits() == 16; }
bool is_float32(const Halide::Type &type) { return type.is_float() && type.bits() == 32; }

std::string_view name_of(const hi::Call *call) {
    return call->name.rfind("strict_", 0) == 0 ? std::string_view(call->name) : math::primitive_name(call);
}

/// Whether a call hands on relative errors of a few float steps without making more of them than a float rounding there would.
bool hands_on(const hi::Call *call) {
    static const std::set<std::string_view> names = {"exp",        "exp_below",  "exp_term",   "div_by_sum", "tanh",      "sqrt",
                                                     "rsqrt",      "abs",        "neg",        "minimum",    "maximum",   "erf",
                                                     "log",        "add",        "sub",        "mul",        "div_true",  "strict_add",
                                                     "strict_sub", "strict_mul", "strict_div", "strict_max", "strict_min"};
    return call->type.is_float() && names.count(name_of(call)) > 0;
}

/// Goes through an expression and says of each part whether all that becomes of it is rounded to 16 bits.
class Rounded : public hi::IRGraphMutator {
public:
    Expr mutate_under(const Expr &e, bool rounded) {
        const bool before = std::exchange(rounded_, rounded);
        Expr result = mutate(e);
        rounded_ = before;
        return result;
    }
    using hi::IRGraphMutator::mutate;
    Expr mutate(const Expr &e) override {
        // The same node may stand in both kinds of places: each kind has its own results.
        auto &known = done_[rounded_ ? 1 : 0];
        if (auto found = known.find(e); found != known.end()) {
            return found->second;
        }
        const Expr result = step(e);
        known.emplace(e, result);
        return result;
    }

protected:
    virtual Expr leaf(const Expr &read, bool rounded) = 0;
    virtual Expr changed(const Expr &e, bool rounded) = 0;

private:
    Expr step(const Expr &e) {
        const bool outside = rounded_;
        if (const auto *op = e.as<hi::Call>(); op && op->call_type == hi::Call::Halide) {
            return leaf(under_all(e, false), outside);
        }
        if (const auto *op = e.as<hi::Cast>()) {
            return hi::Cast::make(op->type, mutate_under(op->value, is_narrow_float(op->type) || (outside && op->type.is_float())));
        }
        if (const auto *op = e.as<hi::Select>()) {
            return hi::Select::make(mutate_under(op->condition, false), mutate_under(op->true_value, outside),
                                    mutate_under(op->false_value, outside));
        }
        const auto *call = e.as<hi::Call>();
        const bool converts = call && (name_of(call) == "convert" || name_of(call) == "explicit_cast");
        bool inside = false;
        if (converts) {
            inside = is_narrow_float(e.type()) || (outside && e.type().is_float());
        } else if (call) {
            inside = outside && hands_on(call);
        } else {
            const auto kind = e.node_type();
            const bool arithmetic = kind == hi::IRNodeType::Add || kind == hi::IRNodeType::Sub || kind == hi::IRNodeType::Mul ||
                                    kind == hi::IRNodeType::Div || kind == hi::IRNodeType::Min || kind == hi::IRNodeType::Max;
            inside = outside && arithmetic && e.type().is_float();
        }
        return changed(under_all(e, inside), outside);
    }
    Expr under_all(const Expr &e, bool inside) {
        const bool before = std::exchange(rounded_, inside);
        Expr result = hi::IRMutator::mutate(e);
        rounded_ = before;
        return result;
    }

    bool rounded_ = false;
    std::map<Expr, Expr, Halide::ExprCompare> done_[2];
};

/// Float registers that are read where something finer than 16 bits is wanted.
class FineReads : public Rounded {
public:
    explicit FineReads(std::set<std::string> &fine) : fine_(fine) {}

private:
    Expr leaf(const Expr &read, bool rounded) override {
        if (!rounded) {
            fine_.insert(read.as<hi::Call>()->name);
        }
        return read;
    }
    Expr changed(const Expr &e, bool) override { return e; }
    std::set<std::string> &fine_;
};

class Cheapen : public Rounded {
private:
    Expr leaf(const Expr &read, bool) override { return read; }
    Expr changed(const Expr &e, bool rounded) override {
        const auto *call = e.as<hi::Call>();
        const std::string_view name = call ? name_of(call) : "";
        if (e.type().is_bfloat()) {
            const auto *cast = e.as<hi::Cast>();
            const Expr operand = cast ? cast->value : name == "convert" || name == "explicit_cast" ? call->args[0] : Expr();
            return operand.defined() && is_call(operand, "fast_tanh") ? hi::Cast::make(e.type(), replaced(operand, "rough_tanh")) : e;
        }
        if (!rounded || !is_float32(e.type())) {
            return e;
        }
        if (const auto *op = e.as<hi::Div>()) {
            return quotient(op->a, op->b);
        }
        if (const auto *op = e.as<hi::Add>()) {
            return sum(e, op->a, op->b);
        }
        if (name == "strict_add" || name == "add") {
            return sum(e, call->args[0], call->args[1]);
        }
        if (name == "strict_div" || name == "div_true") {
            return quotient(call->args[0], call->args[1]);
        }
        if (name == "div_by_sum") {
            const auto *below = call->args[0].as<hi::Call>();
            return is_call(call->args[0], "fast_exp_below") ? math::call(e.type(), "fast_exp_share", {below->args[0], call->args[1]})
                                                            : math::call(e.type(), "fast_div_by_large", call->args);
        }
        if (name == "exp" || name == "exp_below" || name == "exp_term" || name == "rsqrt" || name == "tanh") {
            return math::call(e.type(), "fast_" + std::string(name), call->args);
        }
        return e;
    }
    static bool is_call(const Expr &e, std::string_view name) {
        const auto *call = e.as<hi::Call>();
        return call && math::primitive_name(call) == name;
    }
    static Expr replaced(const Expr &e, std::string_view name) { return math::call(e.type(), name, e.as<hi::Call>()->args); }
    /// A function and a number: 1 + tanh(x) and 1 + erf(x) need no care near 0, and beside a number an exponential may vanish early.
    static Expr sum(const Expr &e, const Expr &a, const Expr &b) {
        const Expr &function = a.as<hi::FloatImm>() ? b : a;
        const auto *number = (a.as<hi::FloatImm>() ? a : b).as<hi::FloatImm>();
        if (number && number->value == 1 && is_call(function, "fast_tanh")) {
            return replaced(function, "fast_one_plus_tanh");
        }
        if (number && number->value == 1 && is_call(function, "erf")) {
            return replaced(function, "fast_one_plus_erf");
        }
        if (number && std::abs(number->value) > 1e-6 && is_call(function, "fast_exp")) {
            return function.same_as(a) ? hi::Add::make(replaced(a, "fast_exp_term"), b) : hi::Add::make(a, replaced(b, "fast_exp_term"));
        }
        return contracted(e, a, b);
    }
    /// A product and a sum, rounded once.
    static Expr contracted(const Expr &e, const Expr &a, const Expr &b) {
        for (const auto &[product, other] : {std::pair(a, b), std::pair(b, a)}) {
            const auto *mul = product.as<hi::Mul>();
            const auto *call = product.as<hi::Call>();
            if (mul) {
                return math::call(e.type(), "fma", {mul->a, mul->b, other});
            }
            if (call && (name_of(call) == "strict_mul" || name_of(call) == "mul")) {
                return math::call(e.type(), "fma", {call->args[0], call->args[1], other});
            }
        }
        return e;
    }
    /// x of 1 + exp(x); undefined where the expression is something else.
    static Expr logistic_argument(const Expr &e) {
        const auto *call = e.as<hi::Call>();
        const auto *add = e.as<hi::Add>();
        if (!add && !(call && (name_of(call) == "strict_add" || name_of(call) == "add"))) {
            return Expr();
        }
        const Expr &a = add ? add->a : call->args[0], &b = add ? add->b : call->args[1];
        const Expr &other = a.as<hi::FloatImm>() ? b : a;
        const auto *number = (a.as<hi::FloatImm>() ? a : b).as<hi::FloatImm>();
        return number && number->value == 1 && is_call(other, "fast_exp_term") ? other.as<hi::Call>()->args[0] : Expr();
    }
    /// A number, or the sum of an exponential and a positive number.
    static bool is_large(const Expr &e) {
        constexpr double least = 0x1p-60;
        if (const auto *number = e.as<hi::FloatImm>()) {
            return std::abs(number->value) > least;
        }
        const auto *call = e.as<hi::Call>();
        const auto *add = e.as<hi::Add>();
        if (!add && !(call && (name_of(call) == "strict_add" || name_of(call) == "add"))) {
            return false;
        }
        const Expr &a = add ? add->a : call->args[0], &b = add ? add->b : call->args[1];
        const auto *number = (a.as<hi::FloatImm>() ? a : b).as<hi::FloatImm>();
        const Expr &other = a.as<hi::FloatImm>() ? b : a;
        return number && number->value > least && (is_call(other, "fast_exp_term") || is_call(other, "fast_exp"));
    }
    static Expr quotient(const Expr &a, const Expr &b) {
        int exponent = 0;
        if (const auto *number = b.as<hi::FloatImm>(); number && std::abs(std::frexp(number->value, &exponent)) == 0.5) {
            return hi::Div::make(a, b);  // the compiler multiplies by the exact reciprocal
        }
        if (const Expr x = logistic_argument(b); x.defined()) {
            return math::call(a.type(), "fast_logistic_share", {a, x});
        }
        if (is_large(b)) {
            return math::call(a.type(), hi::is_const_one(a) ? "fast_reciprocal_of_large" : "fast_div_by_large",
                              hi::is_const_one(a) ? std::vector<Expr>{b} : std::vector<Expr>{a, b});
        }
        return hi::is_const_one(a) ? math::call(b.type(), "fast_reciprocal", {b}) : math::call(a.type(), "fast_div", {a, b});
    }
};

class CheapFunctions {
public:
    explicit CheapFunctions(Launch &launch) : launch_(launch) {}

    void run() {
        std::size_t known;
        do {  // a reader that wants more passes the wish on to what it is computed from
            known = fine_.size();
            look(launch_.body);
        } while (fine_.size() != known);
        rewrite(launch_.body);
    }

private:
    /// Whether what is stored to the buffer is rounded to 16 bits there or later.
    bool rounds(const std::string &name) const {
        const Buffer *buffer = launch_.find_buffer(name);
        const bool kept = buffer->memory == Memory::registers && !fine_.count(name);
        return std::all_of(buffer->types.begin(), buffer->types.end(),
                           [&](const Halide::Type &type) { return is_narrow_float(type) || (kept && type.is_float()); });
    }
    void read(const Expr &e, bool rounded) {
        if (e.defined()) {
            FineReads(fine_).mutate_under(e, rounded);
        }
    }
    void look(const Block &block) {
        visit_statements(block, [&](const Statement &s) {
            const auto *store = s.as<Store>();
            const auto *fold = s.as<tile::Fold>();
            if (store || fold) {
                const bool rounded = rounds(store ? store->buffer : fold->accumulator);
                for (const Expr &e : store ? store->values : fold->terms) {
                    read(e, rounded);
                }
            } else if (s.as<Combine>()) {
                return;  // in place: what becomes of the result decides
            } else if (const auto *whole = s.as<VectorStore>()) {
                if (!rounds(whole->buffer)) {
                    fine_.insert(whole->registers);
                }
            } else {
                for (const std::string &name : read_buffers(s)) {
                    fine_.insert(name);
                }
            }
        });
    }
    void rewrite(Block &block) {
        for (Statement &s : block) {
            if (auto *store = s.as<Store>()) {
                replace(store->values, rounds(store->buffer));
            } else if (auto *fold = s.as<tile::Fold>()) {
                replace(fold->terms, rounds(fold->accumulator));
            } else if (Block *body = body_of(s)) {
                rewrite(*body);
            }
        }
    }
    void replace(std::vector<Expr> &expressions, bool rounded) {
        for (Expr &e : expressions) {
            e = cheapen_.mutate_under(skip_exact_conversions(e), rounded);
        }
    }

    Launch &launch_;
    Cheapen cheapen_;             ///< one for all: what is shared stays shared
    std::set<std::string> fine_;  ///< buffers with a reader that wants more than 16 bits
};

}  // namespace

void cheap_functions(Launch &launch) { CheapFunctions(launch).run(); }

}  // namespace tilewright
