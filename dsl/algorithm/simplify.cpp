#include "dsl/algorithm/simplify.h"

#include <map>
#include <string>

namespace tilewright {
namespace {

using namespace Halide::Internal;
using Halide::Expr;

/// Replaces what is opaque by variables of the same types.
class Protect : public IRGraphMutator {
public:
    std::map<std::string, Expr> hidden;
    using IRGraphMutator::mutate;
    Expr mutate(const Expr &e) override {
        if (e.defined() && (e.as<Call>() || (!e.type().is_int_or_uint()) || e.as<Cast>())) {
            auto found = names_.find(e);
            if (found == names_.end()) {
                std::string name = "hidden." + std::to_string(names_.size());
                found = names_.emplace(e, name).first;
                hidden[name] = e;
            }
            return Variable::make(e.type(), found->second);
        }
        return IRGraphMutator::mutate(e);
    }

private:
    std::map<Expr, std::string, IRGraphDeepCompare> names_;
};

class Uncover : public IRGraphMutator {
public:
    explicit Uncover(const std::map<std::string, Expr> &hidden) : hidden_(hidden) {}
    using IRGraphMutator::visit;
    Expr visit(const Variable *op) override {
        auto found = hidden_.find(op->name);
        return found == hidden_.end() ? Expr(op) : found->second;
    }

private:
    const std::map<std::string, Expr> &hidden_;
};

}  // namespace

Expr simplify_integers(const Expr &e, const Scope<Interval> &ranges) {
    Protect protect;
    const Expr safe = simplify(protect.mutate(e), true, ranges);
    return protect.hidden.empty() ? safe : Uncover(protect.hidden).mutate(safe);
}

}  // namespace tilewright
