#include "lowering/cpu/func_values.h"

#include <algorithm>

namespace tilewright {

using Halide::Expr;
namespace hi = Halide::Internal;

std::string func_name(std::string stage) {
    std::replace_if(
        stage.begin(), stage.end(), [](char c) { return c == '.' || c == '(' || c == ')'; }, '_');
    return stage + "_f";
}

std::vector<Expr> places_of(const hi::Function &function) {
    std::vector<Expr> places;
    for (const std::string &name : function.args()) {
        places.push_back(hi::Variable::make(Halide::Int(32), name));
    }
    return places;
}

std::vector<Expr> values_at(const hi::Function &function, const std::vector<Expr> &places) {
    std::vector<Expr> values;
    for (int i = 0; i < function.outputs(); i++) {
        values.push_back(hi::Call::make(function, places, i));
    }
    return values;
}

}  // namespace tilewright
