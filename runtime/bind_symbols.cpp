#include "runtime/bind_symbols.h"

#include "dsl/error.h"

namespace tilewright {
namespace {

std::string list(const std::vector<std::int64_t> &values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

/// Solves `size` = coefficient * s + constant for its only unknown symbol; empty where it is not of that form or has no whole solution.
std::optional<std::int64_t> solve(const Extent &size, const std::string &symbol, const SymbolValues &known, std::int64_t actual) {
    SymbolValues at = known;
    const auto value_at = [&](std::int64_t s) { return at[symbol] = s, size.evaluate(at); };
    const std::int64_t constant = value_at(0);
    const std::int64_t slope = value_at(1) - constant;
    if (slope == 0 || (actual - constant) % slope != 0) {
        return std::nullopt;
    }
    const std::int64_t solution = (actual - constant) / slope;
    return value_at(solution) == actual ? std::optional(solution) : std::nullopt;
}

void check_tensor(const Plan &plan, int index, const Tensor &tensor) {
    const TensorMeta &meta = plan.buffers[plan.user_inputs[index]].meta;
    if (tensor.dtype != meta.dtype) {
        user_error("{}: dtype is {} where the model wants {}; convert the tensor", input_label(plan, index), name(tensor.dtype),
                   name(meta.dtype));
    }
    if (tensor.sizes.size() != meta.sizes.size()) {
        user_error("{}: {} dimensions, sizes {}, where the model wants {}, sizes {}", input_label(plan, index), tensor.sizes.size(),
                   list(tensor.sizes), meta.sizes.size(), to_string(meta.sizes));
    }
}

}  // namespace

std::string input_label(const Plan &plan, int user_input) {
    return fmt::format("input {} \"{}\"", user_input, plan.buffers[plan.user_inputs[user_input]].name);
}

std::string index_error_message(const Plan &plan, int site, std::int64_t index, std::int64_t size) {
    if (site == zero_divisor_site) {
        return "an integer is divided by zero; replace the zeros before the division, as PyTorch asks for on the CPU";
    }
    const bool known = site >= 0 && site < static_cast<int>(plan.index_sites.size());
    return fmt::format("{}: index {} is out of range for size {}; correct the indices given to the model",
                       known ? plan.index_sites[site].message : "an indexing operator", index, size);
}

SymbolValues bind_symbols(const Plan &plan, std::span<const Tensor> inputs) {
    if (inputs.size() != plan.user_inputs.size()) {
        user_error("{} {} given where the model takes {}", inputs.size(), inputs.size() == 1 ? "input" : "inputs", plan.user_inputs.size());
    }
    SymbolValues values;
    const int count = static_cast<int>(inputs.size());
    const auto for_each_size = [&](auto &&visit) {
        for (int i = 0; i < count; ++i) {
            const TensorMeta &meta = plan.buffers[plan.user_inputs[i]].meta;
            for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
                visit(i, static_cast<int>(d), meta.sizes[d], inputs[i].sizes[d]);
            }
        }
    };
    for (int i = 0; i < count; ++i) {
        check_tensor(plan, i, inputs[i]);
    }
    for_each_size([&](int, int, const Extent &size, std::int64_t actual) {
        if (size.kind() == Extent::Kind::symbol) {
            values.emplace(size.symbol_name(), actual);
        }
    });
    for_each_size([&](int, int, const Extent &size, std::int64_t actual) {
        std::set<std::string> symbols;
        size.collect_symbols(symbols);
        std::erase_if(symbols, [&](const std::string &s) { return values.contains(s); });
        if (symbols.size() == 1) {
            if (const auto value = solve(size, *symbols.begin(), values, actual)) {
                values.emplace(*symbols.begin(), *value);
            }
        }
    });
    for_each_size([&](int i, int d, const Extent &size, std::int64_t actual) {
        std::set<std::string> symbols;
        size.collect_symbols(symbols);
        for (const std::string &symbol : symbols) {
            if (!values.contains(symbol)) {
                user_error("{}: size {} of dimension {} gives no whole value for {} in {}", input_label(plan, i), actual, d, symbol,
                           size.to_string());
            }
            const auto range = plan.symbols.find(symbol);
            const std::int64_t value = values.at(symbol);
            if (range != plan.symbols.end() && (value < range->second.min || value > range->second.max)) {
                user_error("{}: dimension {} gives {} = {}, outside the range [{}, {}] that the model was exported with",
                           input_label(plan, i), d, symbol, value, range->second.min, range->second.max);
            }
        }
        const std::int64_t expected = size.evaluate(values);
        if (expected != actual) {
            user_error("{}: size of dimension {} is {} where the model wants {}{}", input_label(plan, i), d, actual, expected,
                       size.is_constant() ? "" : " (" + size.to_string() + ", bound by the other inputs' sizes)");
        }
    });
    for (const auto &[symbol, range] : plan.symbols) {
        if (!values.contains(symbol) && range.min == range.max) {
            values.emplace(symbol, range.min);
        }
    }
    return values;
}

}  // namespace tilewright
