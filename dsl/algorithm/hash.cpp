// Stages and inputs are numbered in the order in which a walk from the outputs first meets them, so that neither names nor the order of
// declaration matter; each expression is hashed once, however often it is shared.
#include "dsl/algorithm/hash.h"

#include <bit>
#include <charconv>
#include <deque>
#include <unordered_map>

#include "dsl/algorithm/analysis.h"
#include "dsl/algorithm/expression.h"
#include "dsl/error.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;

std::string Hash::to_string() const { return fmt::format("{:016x}", value); }

std::optional<Hash> Hash::parse(std::string_view text) {
    Hash hash;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash.value, 16);
    bool whole = text.size() == 16 && error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(hash) : std::nullopt;
}

namespace {

/// Mixing of splitmix64 (Steele, Lea, Flood 2014), chained.
class Mixer {
public:
    Mixer &add(std::uint64_t x) {
        state += 0x9e3779b97f4a7c15ULL + x;
        state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
        state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
        state ^= state >> 31;
        return *this;
    }
    Mixer &add(std::string_view text) {
        add(text.size());
        for (char c : text) {
            add(static_cast<unsigned char>(c));
        }
        return *this;
    }
    Mixer &add(Halide::Type type) { return add(static_cast<std::uint64_t>(type.code())).add(static_cast<std::uint64_t>(type.bits())); }
    std::uint64_t value() const { return state; }

private:
    std::uint64_t state = 0x7469'6c65'7772'6967ULL;
};

enum class StrideClass { contiguous, permuted, broadcast, general };

StrideClass stride_class(const TensorMeta &meta) {
    if (meta.is_contiguous()) {
        return StrideClass::contiguous;
    }
    std::vector<int> order;  // dimensions that matter, by decreasing stride where strides are constants
    for (int i = 0; i < meta.rank(); i++) {
        if (meta.sizes[i] == Extent(1)) {
            continue;
        }
        if (meta.strides[i] == Extent(0)) {
            return StrideClass::broadcast;
        }
        order.push_back(i);
    }
    // Permuted: taken innermost first, each stride is the product of the sizes before it.
    Extent expected = 1;
    while (!order.empty()) {
        auto next = std::find_if(order.begin(), order.end(), [&](int i) { return meta.strides[i] == expected; });
        if (next == order.end()) {
            return StrideClass::general;
        }
        expected = expected * meta.sizes[*next];
        order.erase(next);
    }
    return StrideClass::permuted;
}

class Hasher {
public:
    explicit Hasher(const Algorithm &algorithm) : algorithm(algorithm) {
        for (const Stage &stage : algorithm.stages) {
            stages.emplace(stage.name(), &stage);
        }
        for (const TensorInput &input : algorithm.inputs) {
            inputs.emplace(input.name(), &input);
        }
    }

    std::uint64_t run() {
        for (const TensorOutput &output : algorithm.outputs) {
            hash.add(number_of(output.stage)).add(static_cast<std::uint64_t>(output.tuple_index));
            hash.add(static_cast<std::uint64_t>(output.meta.dtype)).add(static_cast<std::uint64_t>(stride_class(output.meta)));
        }
        while (!pending.empty()) {
            std::string name = pending.front();
            pending.pop_front();
            if (auto stage = stages.find(name); stage != stages.end()) {
                hash_stage(*stage->second);
            } else if (auto input = inputs.find(name); input != inputs.end()) {
                hash_input(*input->second);
            } else {
                internal_error("{} is read and is neither a stage nor an input", name);
            }
        }
        return hash.value();
    }

    std::vector<Extent> extents;  ///< one of each class, by first visit

private:
    std::uint64_t number_of(const std::string &name) {
        auto [found, added] = numbers.emplace(name, numbers.size());
        if (added) {
            pending.push_back(name);
        }
        return found->second;
    }

    void hash_extents(const std::vector<Extent> &list) {
        hash.add(list.size());
        for (const Extent &extent : list) {
            std::string key = extent.to_string();
            auto [found, added] = extent_classes.emplace(key, extent_classes.size());
            if (added) {
                extents.push_back(extent);
            }
            hash.add(found->second);
        }
    }

    void hash_input(const TensorInput &input) {
        hash.add("input").add(static_cast<std::uint64_t>(input.meta.dtype)).add(static_cast<std::uint64_t>(stride_class(input.meta)));
        hash_extents(input.meta.sizes);
    }

    void hash_stage(const Stage &stage) {
        hi::Function function = stage.func.function();
        hash_extents(stage.extents);
        hash_extents(stage.reduction_extents);
        for (const Halide::Type &type : function.output_types()) {
            hash.add(type);
        }
        variables.clear();
        memo.clear();
        for (const std::string &argument : function.args()) {
            variables.emplace(argument, variables.size());
        }
        if (function.has_extern_definition()) {
            hash_extern(function);
            return;
        }
        hash_values("pure", function.definition());
        for (const hi::Definition &update : function.updates()) {
            for (const hi::ReductionVariable &variable : update.schedule().rvars()) {
                variables.emplace(variable.var, variables.size());
            }
            hash_values("update", update);
        }
    }

    void hash_extern(const hi::Function &function) {
        hash.add("extern").add(function.extern_function_name());
        for (const Halide::ExternFuncArgument &argument : function.extern_arguments()) {
            if (argument.is_func()) {
                hash.add(number_of(hi::Function(argument.func).name()));
            } else if (argument.is_image_param()) {
                hash.add(number_of(argument.image_param.name()));
            } else if (argument.is_expr()) {
                hash.add(of(inline_lets(argument.expr)));
            }
        }
    }

    void hash_values(std::string_view kind, const hi::Definition &definition) {
        hash.add(kind);
        for (const std::vector<Expr> &list : {definition.args(), definition.values()}) {
            kept.push_back(inline_lets(list));
            hash.add(list.size());
            for (const Expr &e : kept.back()) {
                hash.add(of(e));
            }
        }
        kept.clear();
        memo.clear();
    }

    /// Hash of an expression whose lets are inlined.
    std::uint64_t of(const Expr &e) {
        auto found = memo.find(e.get());
        if (found != memo.end()) {
            return found->second;
        }
        Mixer mixer;
        mixer.add(static_cast<std::uint64_t>(e->node_type)).add(e.type());
        add_node(mixer, e);
        memo.emplace(e.get(), mixer.value());
        return mixer.value();
    }

    template<typename Node> void add_operands(Mixer &mixer, const Expr &e) {
        const auto *op = e.as<Node>();
        mixer.add(of(op->a)).add(of(op->b));
    }

    void add_node(Mixer &mixer, const Expr &e) {
        switch (e->node_type) {
            case hi::IRNodeType::IntImm:
                mixer.add(static_cast<std::uint64_t>(e.as<hi::IntImm>()->value));
                return;
            case hi::IRNodeType::UIntImm:
                mixer.add(e.as<hi::UIntImm>()->value);
                return;
            case hi::IRNodeType::FloatImm:
                mixer.add(std::bit_cast<std::uint64_t>(e.as<hi::FloatImm>()->value));
                return;
            case hi::IRNodeType::StringImm:
                mixer.add(e.as<hi::StringImm>()->value);
                return;
            case hi::IRNodeType::Variable:
                add_variable(mixer, *e.as<hi::Variable>());
                return;
            case hi::IRNodeType::Add:
                add_operands<hi::Add>(mixer, e);
                return;
            case hi::IRNodeType::Sub:
                add_operands<hi::Sub>(mixer, e);
                return;
            case hi::IRNodeType::Mul:
                add_operands<hi::Mul>(mixer, e);
                return;
            case hi::IRNodeType::Div:
                add_operands<hi::Div>(mixer, e);
                return;
            case hi::IRNodeType::Mod:
                add_operands<hi::Mod>(mixer, e);
                return;
            case hi::IRNodeType::Min:
                add_operands<hi::Min>(mixer, e);
                return;
            case hi::IRNodeType::Max:
                add_operands<hi::Max>(mixer, e);
                return;
            case hi::IRNodeType::EQ:
                add_operands<hi::EQ>(mixer, e);
                return;
            case hi::IRNodeType::NE:
                add_operands<hi::NE>(mixer, e);
                return;
            case hi::IRNodeType::LT:
                add_operands<hi::LT>(mixer, e);
                return;
            case hi::IRNodeType::LE:
                add_operands<hi::LE>(mixer, e);
                return;
            case hi::IRNodeType::GT:
                add_operands<hi::GT>(mixer, e);
                return;
            case hi::IRNodeType::GE:
                add_operands<hi::GE>(mixer, e);
                return;
            case hi::IRNodeType::And:
                add_operands<hi::And>(mixer, e);
                return;
            case hi::IRNodeType::Or:
                add_operands<hi::Or>(mixer, e);
                return;
            case hi::IRNodeType::Not:
                mixer.add(of(e.as<hi::Not>()->a));
                return;
            case hi::IRNodeType::Cast:
                mixer.add(of(e.as<hi::Cast>()->value));
                return;
            case hi::IRNodeType::Reinterpret:
                mixer.add(of(e.as<hi::Reinterpret>()->value));
                return;
            case hi::IRNodeType::Select: {
                const auto *op = e.as<hi::Select>();
                mixer.add(of(op->condition)).add(of(op->true_value)).add(of(op->false_value));
                return;
            }
            case hi::IRNodeType::Call:
                add_call(mixer, *e.as<hi::Call>());
                return;
            default:
                internal_error("an algorithm's expression has a node of kind {}", static_cast<int>(e->node_type));
        }
    }

    void add_variable(Mixer &mixer, const hi::Variable &variable) {
        if (auto found = variables.find(variable.name); found != variables.end()) {
            mixer.add(found->second);
            return;
        }
        // A symbol: by first visit in the whole algorithm, since its name is free to change.
        auto [symbol, added] = symbols.emplace(variable.name, symbols.size());
        mixer.add("symbol").add(symbol->second);
    }

    void add_call(Mixer &mixer, const hi::Call &call) {
        mixer.add(static_cast<std::uint64_t>(call.call_type)).add(call.args.size());
        size_t hashed = call.args.size();
        if (is_read(&call)) {
            mixer.add(number_of(call.name)).add(static_cast<std::uint64_t>(call.value_index));
        } else {
            mixer.add(call.name);
            if (call.name == "tw.checked_index") {
                hashed = 3;  // the site only says where an error was
            }
        }
        for (size_t i = 0; i < hashed; i++) {
            mixer.add(of(call.args[i]));
        }
    }

    const Algorithm &algorithm;
    Mixer hash;
    std::unordered_map<std::string, const Stage *> stages;
    std::unordered_map<std::string, const TensorInput *> inputs;
    std::unordered_map<std::string, std::uint64_t> numbers, symbols, extent_classes, variables;
    std::unordered_map<const hi::IRNode *, std::uint64_t> memo;
    std::vector<std::vector<Expr>> kept;  ///< keeps the memo's nodes alive
    std::deque<std::string> pending;
};

}  // namespace

Hash structural_hash(const Algorithm &algorithm) { return {Hasher(algorithm).run()}; }

std::vector<Extent> extent_signature(const Algorithm &algorithm) {
    Hasher hasher(algorithm);
    hasher.run();
    return hasher.extents;
}

}  // namespace tilewright
