#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/combiner.h"

namespace tilewright {

std::string_view name(Form form) {
    switch (form) {
        case Form::pointwise:
            return "pointwise";
        case Form::gather:
            return "gather";
        case Form::reduction:
            return "reduction";
        case Form::contraction:
            return "contraction";
        case Form::window:
            return "window";
        case Form::scan:
            return "scan";
        case Form::scatter:
            return "scatter";
        case Form::sort:
            return "sort";
    }
    return "?";
}

std::string_view name(Combiner combiner) {
    switch (combiner) {
        case Combiner::sum:
            return "sum";
        case Combiner::product:
            return "product";
        case Combiner::minimum:
            return "minimum";
        case Combiner::maximum:
            return "maximum";
        case Combiner::logical_and:
            return "logical_and";
        case Combiner::logical_or:
            return "logical_or";
        case Combiner::arg_minimum:
            return "arg_minimum";
        case Combiner::arg_maximum:
            return "arg_maximum";
        case Combiner::welford:
            return "welford";
        case Combiner::log_sum_exp:
            return "log_sum_exp";
        case Combiner::last:
            return "last";
        case Combiner::general:
            return "general";
    }
    return "?";
}

}  // namespace tilewright
