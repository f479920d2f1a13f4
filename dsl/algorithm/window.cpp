#include "dsl/algorithm/window.h"

#include <algorithm>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

namespace {

bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The value below a conversion that changes no value; undefined where `e` is none.
Expr below_conversion(const Expr &e) {
    if (const auto *cast = e.as<hi::Cast>()) {
        return cast->value;
    }
    const auto *call = e.as<hi::Call>();
    const auto name = call ? math::primitive_name(call) : std::string_view();
    const bool widens = (name == "convert" || name == "explicit_cast") && call->args[0].type().is_float() && call->type.is_float() &&
                        call->type.bits() >= call->args[0].type().bits() && (call->type.bits() > 16 || call->type == call->args[0].type());
    return widens ? call->args[0] : Expr();
}

/// A sum of variables that is at least 0 where a condition holds.
struct Bound {
    std::vector<std::pair<std::string, std::int64_t>> terms;
    Extent constant;
};

/// An argument over a constant becomes the argument alone; `sharers` keeps the constant.
class SharedPixel : public hi::IRGraphMutator {
public:
    explicit SharedPixel(const std::vector<std::string> &arguments) : arguments_(arguments) {}
    std::int64_t sharers = 1;
    bool is_mixed = false;  ///< more than one quotient, or arguments besides it

    using hi::IRGraphMutator::visit;
    Expr visit(const hi::Div *op) override {
        const auto *variable = op->a.as<hi::Variable>();
        const auto divisor = hi::as_const_int(op->b);
        if (!variable || !divisor || *divisor < 2 || !contains(arguments_, variable->name)) {
            return hi::IRGraphMutator::visit(op);
        }
        is_mixed |= sharers > 1;
        sharers = *divisor;
        return op->a;
    }
    Expr visit(const hi::Variable *op) override {
        plain_ |= contains(arguments_, op->name);
        return op;
    }
    bool mixes() const { return is_mixed || (sharers > 1 && plain_); }

private:
    const std::vector<std::string> &arguments_;
    bool plain_ = false;
};

class Matcher {
public:
    Matcher(const std::vector<std::string> &arguments, const std::vector<std::string> &variables, bool with_groups)
        : arguments_(arguments), variables_(variables), all_(arguments), with_groups_(with_groups) {
        all_.insert(all_.end(), variables.begin(), variables.end());
    }

    /// Finds the read and the conditions that guard it.
    const hi::Call *find_read(Expr e) {
        while (true) {
            if (const auto *choice = e.as<hi::Select>()) {
                if (!hi::is_const_zero(choice->false_value) || !add_conditions(choice->condition)) {
                    return nullptr;
                }
                e = choice->true_value;
                continue;
            }
            const auto *call = e.as<hi::Call>();
            if (call && is_read(call)) {
                return call;
            }
            e = below_conversion(e);
            if (!e.defined()) {
                return nullptr;
            }
        }
    }

    std::optional<WindowIndex> match_index(const Expr &index, const Extent &size) {
        Clamps clamps{size};
        Expr place = unclamp(index, Expr(0), clamps);
        SharedPixel shared(arguments_);
        if (with_groups_) {
            place = shared.mutate(place);
        }
        const auto affine = clamps.exact && !shared.mixes() ? as_affine(place, all_) : std::nullopt;
        const auto constant = affine ? from_halide(affine->constant) : std::nullopt;
        if (!constant) {
            return std::nullopt;
        }
        WindowIndex result;
        result.offset = *constant;
        result.sharers = shared.sharers;
        for (const auto &[name, factor] : affine->terms) {
            const bool is_pixel = contains(arguments_, name);
            std::string &variable = is_pixel ? result.pixel : result.tap;
            if (factor <= 0 || !variable.empty()) {
                return std::nullopt;
            }
            variable = name;
            (is_pixel ? result.stride : result.dilation) = factor;
        }
        const bool low = use_bound(affine->terms, 1, *constant), high = use_bound(affine->terms, -1, size - 1 - *constant);
        // What is clamped must be zero there.
        if ((clamps.low && !low) || (clamps.high && !high)) {
            return std::nullopt;
        }
        return result;
    }
    /// Whether every condition was the border of some dimension.
    bool conditions_used() const {
        return std::all_of(used_.begin(), used_.end(), [](bool used) { return used; });
    }

private:
    struct Clamps {
        Extent size;
        bool low = false, high = false;
        bool exact = true;  ///< they hold exactly at 0 and at the last place
    };

    bool is_free(const Expr &e) const {
        const std::vector<std::string> mentioned = variables_of(e);
        return std::none_of(mentioned.begin(), mentioned.end(), [&](const std::string &name) { return contains(all_, name); });
    }
    /// The expression plus `shift` is the place; so are clamps inside of sums.
    Expr unclamp(const Expr &e, const Expr &shift, Clamps &clamps) {
        const auto strip = [&](const Expr &a, const Expr &b, bool low) {
            const Expr &limit = is_free(b) ? b : a;
            const Expr &rest = is_free(b) ? a : b;
            const auto at = is_free(limit) ? from_halide(hi::simplify(limit + shift)) : std::nullopt;
            (low ? clamps.low : clamps.high) = true;
            clamps.exact = clamps.exact && at && *at == (low ? Extent(0) : clamps.size - 1);
            return unclamp(rest, shift, clamps);
        };
        if (const auto *op = e.as<hi::Max>()) {
            return strip(op->a, op->b, true);
        }
        if (const auto *op = e.as<hi::Min>()) {
            return strip(op->a, op->b, false);
        }
        if (const auto *op = e.as<hi::Add>(); op && is_free(op->b)) {
            return unclamp(op->a, shift + op->b, clamps) + op->b;
        }
        if (const auto *op = e.as<hi::Sub>(); op && is_free(op->b)) {
            return unclamp(op->a, shift - op->b, clamps) - op->b;
        }
        return e;
    }

    bool add_conditions(const Expr &condition) {
        if (const auto *op = condition.as<hi::And>()) {
            return add_conditions(op->a) && add_conditions(op->b);
        }
        if (const auto *op = condition.as<hi::GE>()) {
            return add_bound(op->a - op->b);
        }
        if (const auto *op = condition.as<hi::LE>()) {
            return add_bound(op->b - op->a);
        }
        if (const auto *op = condition.as<hi::GT>()) {
            return add_bound(op->a - op->b - 1);
        }
        if (const auto *op = condition.as<hi::LT>()) {
            return add_bound(op->b - op->a - 1);
        }
        return false;
    }
    bool add_bound(const Expr &difference) {
        const auto affine = as_affine(difference, all_);
        const auto constant = affine ? from_halide(affine->constant) : std::nullopt;
        if (!constant) {
            return false;
        }
        bounds_.push_back({affine->terms, *constant});
        used_.push_back(false);
        return true;
    }
    bool use_bound(std::vector<std::pair<std::string, std::int64_t>> terms, int sign, const Extent &constant) {
        for (auto &[name, factor] : terms) {
            factor *= sign;
        }
        bool found = false;
        for (std::size_t i = 0; i < bounds_.size(); ++i) {
            if (bounds_[i].terms == terms && bounds_[i].constant == constant) {
                found = used_[i] = true;
            }
        }
        return found;
    }

    const std::vector<std::string> &arguments_, &variables_;
    std::vector<std::string> all_;
    const bool with_groups_;
    std::vector<Bound> bounds_;
    std::vector<bool> used_;
};

}  // namespace

bool WindowRead::varies_along(const std::string &variable) const {
    return std::any_of(indices.begin(), indices.end(),
                       [&](const WindowIndex &index) { return index.pixel == variable || index.tap == variable; });
}

int WindowRead::dimension_shared_along(const std::string &variable) const {
    const auto found = std::find_if(indices.begin(), indices.end(),
                                    [&](const WindowIndex &index) { return index.pixel == variable && index.sharers > 1; });
    return found == indices.end() ? -1 : static_cast<int>(found - indices.begin());
}

std::optional<WindowRead> match_window_read(const Expr &factor, const std::vector<std::string> &arguments,
                                            const std::vector<std::string> &variables,
                                            const std::function<const std::vector<Extent> *(const std::string &)> &sizes_of,
                                            bool with_groups) {
    Matcher matcher(arguments, variables, with_groups);
    WindowRead result;
    result.read = matcher.find_read(factor);
    const std::vector<Extent> *sizes = result.read ? sizes_of(result.read->name) : nullptr;
    if (!sizes || sizes->size() != result.read->args.size()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < sizes->size(); ++i) {
        const auto index = matcher.match_index(result.read->args[i], (*sizes)[i]);
        if (!index) {
            return std::nullopt;
        }
        result.indices.push_back(*index);
    }
    return matcher.conditions_used() ? std::optional(result) : std::nullopt;
}

}  // namespace tilewright
