#include "dsl/algorithm/sort.h"

#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;

void define_sort(Halide::Func func, const std::vector<Halide::Var> &arguments, const Halide::Func &input, const Halide::Expr &extent,
                 bool descending) {
    internal_assert(input.outputs() == 1, "sort of {}, which has {} results", input.name(), input.outputs());
    std::vector<Halide::ExternFuncArgument> parameters = {input, extent, hi::make_bool(descending)};
    func.define_extern(sort_extern_name, parameters, {input.types()[0], Halide::Int(64)}, arguments);
}

std::optional<Sort> match_sort(const Halide::Func &func) {
    hi::Function function = func.function();
    if (!function.has_extern_definition() || function.extern_function_name() != sort_extern_name) {
        return std::nullopt;
    }
    const std::vector<Halide::ExternFuncArgument> &parameters = function.extern_arguments();
    internal_assert(parameters.size() == 3, "sort {} has {} parameters", func.name(), parameters.size());
    Sort sort;
    sort.from_input = parameters[0].is_image_param();
    sort.input = sort.from_input ? parameters[0].image_param.name() : hi::Function(parameters[0].func).name();
    sort.extent = parameters[1].expr;
    sort.descending = hi::is_const_one(parameters[2].expr);
    return sort;
}

}  // namespace tilewright
