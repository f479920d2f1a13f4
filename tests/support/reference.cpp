#include "tests/support/reference.h"

#include <cstring>
#include <stdexcept>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/math.h"
#include "dsl/algorithm/sort.h"
#include "dsl/error.h"
#include "tests/support/reference_math.h"

namespace tilewright::tests {

namespace hi = Halide::Internal;
using Halide::Expr;
using Halide::Type;

namespace {

struct Values {
    Type type;
    std::vector<std::int64_t> sizes;
    std::vector<Scalar> elements;

    Values(Type type, std::vector<std::int64_t> sizes) : type(type), sizes(std::move(sizes)) {
        std::int64_t count = 1;
        for (std::int64_t size : this->sizes) {
            count *= size;
        }
        elements.resize(static_cast<std::size_t>(count));
    }
};

/// Calls `visit` for each point of a box, the last coordinate fastest.
template<typename Visit>
void for_each_point(const std::vector<std::int64_t> &sizes, Visit visit) {
    std::vector<std::int64_t> at(sizes.size(), 0);
    for (std::int64_t size : sizes) {
        if (size == 0) {
            return;
        }
    }
    while (true) {
        visit(at);
        std::size_t dim = sizes.size();
        while (dim > 0 && ++at[dim - 1] == sizes[dim - 1]) {
            at[--dim] = 0;
        }
        if (dim == 0) {
            return;
        }
    }
}

/// The expressions of one definition as straight-line code: each node of the graph once.
class Code {
public:
    using Step = std::function<Scalar(const std::vector<Scalar> &)>;
    struct Environment {
        std::map<std::string, std::vector<Values *>> tensors;  ///< tuple elements by name
        const SymbolValues *symbols = nullptr;
        ReferenceResult *result = nullptr;
    };

    explicit Code(const Environment &environment) : environment(environment) {}

    int variable(const std::string &name) {
        int slot = add([](const std::vector<Scalar> &) { return Scalar(); });
        variables[name] = slot;
        inputs.push_back(slot);
        return slot;
    }

    int compile(const Expr &e) {
        if (auto found = memo.find(e.get()); found != memo.end()) {
            return found->second;
        }
        kept.push_back(e);
        int slot = compile_node(e);
        memo[e.get()] = slot;
        return slot;
    }

    void run(const std::vector<std::int64_t> &values) {
        for (std::size_t i = 0; i < values.size(); i++) {
            slots[static_cast<std::size_t>(inputs[i])] = Scalar{0, values[i]};
        }
        for (std::size_t i = 0; i < steps.size(); i++) {
            if (i >= inputs.size()) {
                slots[i] = steps[i](slots);
            }
        }
    }
    const Scalar &at(int slot) const { return slots[static_cast<std::size_t>(slot)]; }

private:
    int add(Step step) {
        steps.push_back(std::move(step));
        slots.emplace_back();
        return static_cast<int>(steps.size()) - 1;
    }

    int constant(Scalar value) {
        return add([value](const std::vector<Scalar> &) { return value; });
    }

    template<typename Function>
    int operation(const Expr &a, const Expr &b, Type type, Function function) {
        auto left = static_cast<std::size_t>(compile(a)), right = static_cast<std::size_t>(compile(b));
        return add([=](const std::vector<Scalar> &s) { return normalise(function(s[left], s[right]), type); });
    }

    template<typename Node, typename OnFloats, typename OnIntegers>
    int arithmetic(const Expr &e, OnFloats on_floats, OnIntegers on_integers) {
        const auto *op = e.as<Node>();
        if (op->a.type().is_float()) {
            return operation(op->a, op->b, e.type(), [=](Scalar a, Scalar b) { return Scalar{on_floats(a.f, b.f), 0}; });
        }
        return operation(op->a, op->b, e.type(), [=](Scalar a, Scalar b) { return Scalar{0, static_cast<std::int64_t>(on_integers(a.i, b.i))}; });
    }

    static std::int64_t divide(std::int64_t a, std::int64_t b) {
        return b == 0 ? 0 : a / b - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0);
    }

    int compile_node(const Expr &e) {
        auto no_floats = [](double, double) -> double { throw std::logic_error("Halide operator on floats that is not exact"); };
        switch (e->node_type) {
            case hi::IRNodeType::IntImm: return constant({0, e.as<hi::IntImm>()->value});
            case hi::IRNodeType::UIntImm: return constant({0, static_cast<std::int64_t>(e.as<hi::UIntImm>()->value)});
            case hi::IRNodeType::FloatImm: return constant({e.as<hi::FloatImm>()->value, 0});
            case hi::IRNodeType::Variable: return compile_variable(e.as<hi::Variable>()->name);
            case hi::IRNodeType::Add:
                return arithmetic<hi::Add>(e, [](double a, double b) { return a + b; }, [](std::int64_t a, std::int64_t b) { return a + b; });
            case hi::IRNodeType::Sub:
                return arithmetic<hi::Sub>(e, [](double a, double b) { return a - b; }, [](std::int64_t a, std::int64_t b) { return a - b; });
            case hi::IRNodeType::Mul:
                return arithmetic<hi::Mul>(e, [](double a, double b) { return a * b; }, [](std::int64_t a, std::int64_t b) { return a * b; });
            case hi::IRNodeType::Div: return arithmetic<hi::Div>(e, [](double a, double b) { return a / b; }, divide);
            case hi::IRNodeType::Mod: return arithmetic<hi::Mod>(e, no_floats, [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a - divide(a, b) * b; });
            case hi::IRNodeType::Min: return arithmetic<hi::Min>(e, no_floats, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
            case hi::IRNodeType::Max: return arithmetic<hi::Max>(e, no_floats, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
            case hi::IRNodeType::EQ: return arithmetic<hi::EQ>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a == b; });
            case hi::IRNodeType::NE: return arithmetic<hi::NE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a != b; });
            case hi::IRNodeType::LT: return arithmetic<hi::LT>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a < b; });
            case hi::IRNodeType::LE: return arithmetic<hi::LE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a <= b; });
            case hi::IRNodeType::GT: return arithmetic<hi::GT>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a > b; });
            case hi::IRNodeType::GE: return arithmetic<hi::GE>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a >= b; });
            case hi::IRNodeType::And: return arithmetic<hi::And>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a && b; });
            case hi::IRNodeType::Or: return arithmetic<hi::Or>(e, no_floats, [](std::int64_t a, std::int64_t b) { return a || b; });
            case hi::IRNodeType::Not: {
                auto a = static_cast<std::size_t>(compile(e.as<hi::Not>()->a));
                return add([=](const std::vector<Scalar> &s) { return Scalar{0, !s[a].i}; });
            }
            case hi::IRNodeType::Select: {
                const auto *op = e.as<hi::Select>();
                auto c = static_cast<std::size_t>(compile(op->condition)), a = static_cast<std::size_t>(compile(op->true_value)),
                     b = static_cast<std::size_t>(compile(op->false_value));
                return add([=](const std::vector<Scalar> &s) { return s[c].i ? s[a] : s[b]; });
            }
            case hi::IRNodeType::Cast: return conversion(e.as<hi::Cast>()->value, e.type());
            case hi::IRNodeType::Call: return compile_call(e);
            default: throw std::logic_error("the reference evaluator does not know node " + std::to_string(static_cast<int>(e->node_type)));
        }
    }

    int conversion(const Expr &value, Type to) {
        auto a = static_cast<std::size_t>(compile(value));
        Type from = value.type();
        return add([=](const std::vector<Scalar> &s) { return convert(s[a], from, to); });
    }

    int compile_variable(const std::string &name) {
        if (auto found = variables.find(name); found != variables.end()) {
            return found->second;
        }
        return constant({0, environment.symbols->at(name)});
    }

    int compile_call(const Expr &e) {
        const auto *op = e.as<hi::Call>();
        std::vector<std::size_t> args;
        for (const Expr &arg : op->args) {
            args.push_back(static_cast<std::size_t>(compile(arg)));
        }
        if (is_read(op)) {
            return compile_read(*op, args);
        }
        std::string_view name = math::primitive_name(op);
        if (name == "convert" || name == "explicit_cast") {
            return conversion(op->args[0], e.type());
        }
        if (name == "checked_index") {
            return compile_checked_index(args);
        }
        Type operand = op->args[0].type(), type = e.type();
        if (op->is_intrinsic({hi::Call::bitwise_and, hi::Call::bitwise_or, hi::Call::bitwise_xor, hi::Call::bitwise_not})) {
            char kind = op->name[8];  // "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"
            std::size_t a = args[0], b = args.back();
            return add([=](const std::vector<Scalar> &s) {
                std::int64_t x = s[a].i, y = s[b].i;
                return normalise({0, kind == 'a' ? x & y : kind == 'o' ? x | y : kind == 'x' ? x ^ y : ~x}, type);
            });
        }
        ScalarFunction function = find_primitive(name);
        if (!function) {
            throw std::logic_error("the reference evaluator does not know " + op->name);
        }
        return add([=](const std::vector<Scalar> &s) {
            Scalar values[4];
            for (std::size_t i = 0; i < args.size(); i++) {
                values[i] = s[args[i]];
            }
            return normalise(function(values, operand), type);
        });
    }

    int compile_checked_index(const std::vector<std::size_t> &args) {
        ReferenceResult *result = environment.result;
        return add([=](const std::vector<Scalar> &s) {
            std::int64_t index = s[args[0]].i, size = s[args[1]].i, place = index < 0 && s[args[2]].i ? index + size : index;
            if (place >= 0 && place < size) {
                return Scalar{0, place};
            }
            if (!result->index_error) {
                result->index_error = {static_cast<int>(s[args[3]].i), index, size};
            }
            return Scalar();
        });
    }

    int compile_read(const hi::Call &op, const std::vector<std::size_t> &args) {
        auto found = environment.tensors.find(op.name);
        if (found == environment.tensors.end()) {
            throw std::logic_error("nothing is called " + op.name);
        }
        Values *values = found->second.at(static_cast<std::size_t>(op.value_index));
        std::string name = op.name;
        return add([=](const std::vector<Scalar> &s) {
            std::int64_t place = 0;
            for (std::size_t i = 0; i < args.size(); i++) {
                std::int64_t index = s[args[i]].i;
                if (index < 0 || index >= values->sizes[i]) {
                    throw std::out_of_range(fmt::format("{} is read at {} in dimension {} of size {}", name, index, i, values->sizes[i]));
                }
                place = place * values->sizes[i] + index;
            }
            return values->elements[static_cast<std::size_t>(place)];
        });
    }

    const Environment &environment;
    std::vector<Step> steps;
    std::vector<Scalar> slots;
    std::vector<int> inputs;
    std::map<std::string, int> variables;
    std::map<const hi::IRNode *, int> memo;
    std::vector<Expr> kept;
};

std::vector<std::int64_t> evaluate_all(const std::vector<Extent> &extents, const SymbolValues &symbols) {
    std::vector<std::int64_t> values;
    for (const Extent &extent : extents) {
        values.push_back(extent.evaluate(symbols));
    }
    return values;
}

void run_definition(const hi::Definition &definition, const Stage &stage, const std::vector<std::string> &names,
                    const std::vector<std::int64_t> &box, const Code::Environment &environment, std::vector<Values *> targets) {
    Code code(environment);
    for (const std::string &name : names) {
        code.variable(name);
    }
    std::vector<int> places, values;
    for (const Expr &place : inline_lets(definition.args())) {
        places.push_back(code.compile(place));
    }
    for (const Expr &value : inline_lets(definition.values())) {
        values.push_back(code.compile(value));
    }
    for_each_point(box, [&](const std::vector<std::int64_t> &at) {
        code.run(at);
        std::int64_t place = 0;
        for (std::size_t i = 0; i < places.size(); i++) {
            std::int64_t index = code.at(places[i]).i, size = targets[0]->sizes[i];
            if (index < 0 || index >= size) {
                throw std::out_of_range(fmt::format("{} is written at {} in dimension {} of size {}", stage.name(), index, i, size));
            }
            place = place * size + index;
        }
        for (std::size_t i = 0; i < values.size(); i++) {
            targets[i]->elements[static_cast<std::size_t>(place)] = code.at(values[i]);
        }
    });
}

void run_sort(const Sort &sort, const Code::Environment &environment, const std::vector<Values *> &targets) {
    const Values &input = *environment.tensors.at(sort.input)[0];
    auto row = static_cast<std::size_t>(input.sizes.back());
    bool floats = input.type.is_float();
    auto before = [&](const Scalar &a, const Scalar &b) {
        if (floats) {
            return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f;
        }
        return input.type.is_uint() ? static_cast<std::uint64_t>(a.i) < static_cast<std::uint64_t>(b.i) : a.i < b.i;
    };
    for (std::size_t begin = 0; begin + row <= input.elements.size() && row > 0; begin += row) {
        std::vector<std::int64_t> order(row);
        for (std::size_t i = 0; i < row; i++) {
            order[i] = static_cast<std::int64_t>(i);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            const Scalar &x = input.elements[begin + static_cast<std::size_t>(a)], &y = input.elements[begin + static_cast<std::size_t>(b)];
            return sort.descending ? before(y, x) : before(x, y);
        });
        for (std::size_t i = 0; i < row; i++) {
            targets[0]->elements[begin + i] = input.elements[begin + static_cast<std::size_t>(order[i])];
            targets[1]->elements[begin + i] = {0, order[i]};
        }
    }
}

Scalar load(const std::byte *from, DType type) {
    auto as = [&]<typename T>(T) {
        T value;
        std::memcpy(&value, from, sizeof value);
        return value;
    };
    switch (type) {
        case DType::boolean: return {0, as(std::uint8_t{}) != 0};
        case DType::uint8: return {0, as(std::uint8_t{})};
        case DType::int8: return {0, as(std::int8_t{})};
        case DType::int16: return {0, as(std::int16_t{})};
        case DType::int32: return {0, as(std::int32_t{})};
        case DType::int64: return {0, as(std::int64_t{})};
        case DType::uint16: return {0, as(std::uint16_t{})};
        case DType::uint32: return {0, as(std::uint32_t{})};
        case DType::uint64: return {0, static_cast<std::int64_t>(as(std::uint64_t{}))};
        case DType::float16: return {static_cast<double>(static_cast<float>(as(Halide::float16_t{}))), 0};
        case DType::bfloat16: return {static_cast<double>(static_cast<float>(as(Halide::bfloat16_t{}))), 0};
        case DType::float32: return {as(float{}), 0};
        case DType::float64: return {as(double{}), 0};
        default: throw std::logic_error("the reference evaluator does not know this element type");
    }
}

void store(std::byte *to, DType type, Scalar value) {
    auto as = [&]<typename T>(T stored) { std::memcpy(to, &stored, sizeof stored); };
    switch (type) {
        case DType::float16: as(Halide::float16_t(static_cast<float>(value.f))); return;
        case DType::bfloat16: as(Halide::bfloat16_t(static_cast<float>(value.f))); return;
        case DType::float32: as(static_cast<float>(value.f)); return;
        case DType::float64: as(value.f); return;
        default: std::memcpy(to, &value.i, static_cast<std::size_t>(size_in_bytes(type))); return;
    }
}

}  // namespace

ReferenceResult evaluate(const Algorithm &algorithm, const std::map<std::string, HostTensor> &inputs, const SymbolValues &symbols) {
    ReferenceResult result;
    std::list<Values> storage;
    Code::Environment environment{{}, &symbols, &result};
    for (const TensorInput &input : algorithm.inputs) {
        const HostTensor &given = inputs.at(input.name());
        Values &values = storage.emplace_back(to_halide(input.meta.dtype), evaluate_all(input.meta.sizes, symbols));
        int bytes = size_in_bytes(input.meta.dtype);
        std::vector<std::int64_t> strides = evaluate_all(given.meta.strides, symbols);
        std::size_t next = 0;
        for_each_point(values.sizes, [&](const std::vector<std::int64_t> &at) {
            std::int64_t place = 0;
            for (std::size_t i = 0; i < at.size(); i++) {
                place += at[i] * strides[i];
            }
            values.elements[next++] = load(given.data() + place * bytes, input.meta.dtype);
        });
        environment.tensors[input.name()] = {&values};
    }
    for (const Stage &stage : algorithm.stages) {
        hi::Function function = stage.func.function();
        std::vector<std::int64_t> box = evaluate_all(stage.extents, symbols);
        std::vector<Values *> targets;
        for (const Type &type : function.output_types()) {
            targets.push_back(&storage.emplace_back(type, box));
        }
        environment.tensors[stage.name()] = targets;
        if (auto sort = match_sort(stage.func)) {
            run_sort(*sort, environment, targets);
            continue;
        }
        run_definition(function.definition(), stage, function.args(), box, environment, targets);
        for (const hi::Definition &update : function.updates()) {
            // The last coordinate of the box runs fastest, and so does an update's first reduction variable. An argument whose place
            // is computed is no loop.
            std::vector<std::string> names;
            std::vector<std::int64_t> loops;
            for (std::size_t i = 0; i < box.size(); i++) {
                const auto *variable = update.args()[i].as<hi::Variable>();
                if (variable && variable->name == function.args()[i]) {
                    names.push_back(function.args()[i]);
                    loops.push_back(box[i]);
                }
            }
            std::vector<std::int64_t> reduced = evaluate_all(stage.reduction_extents, symbols);
            const auto &variables = update.schedule().rvars();
            for (std::size_t i = variables.size(); i-- > 0;) {
                names.push_back(variables[i].var);
                loops.push_back(reduced[i]);
            }
            run_definition(update, stage, names, loops, environment, targets);
        }
    }
    for (const TensorOutput &output : algorithm.outputs) {
        const Values &values = *environment.tensors.at(output.stage)[static_cast<std::size_t>(output.tuple_index)];
        HostTensor host = HostTensor::zeros(output.meta.dtype, values.sizes);
        for (std::size_t i = 0; i < values.elements.size(); i++) {
            store(host.mutable_data() + i * static_cast<std::size_t>(size_in_bytes(output.meta.dtype)), output.meta.dtype, values.elements[i]);
        }
        result.outputs[output.name] = host;
    }
    return result;
}

namespace {

/// Pairs the elements of a contiguous tensor with places in memory that is laid out as `meta` says, its offset counted from element 0.
template<typename Copy>
void for_each_place(const TensorMeta &meta, const SymbolValues &symbols, Copy copy) {
    std::vector<std::int64_t> strides = evaluate_all(meta.strides, symbols);
    std::int64_t bytes = size_in_bytes(meta.dtype), offset = meta.offset.evaluate(symbols), next = 0;
    for_each_point(evaluate_all(meta.sizes, symbols), [&](const std::vector<std::int64_t> &at) {
        std::int64_t place = offset;
        for (std::size_t i = 0; i < at.size(); i++) {
            place += at[i] * strides[i];
        }
        copy(place * bytes, next * bytes, bytes);
        next++;
    });
}

using Memory = std::vector<std::byte>;

void store_strided(const HostTensor &contiguous, const TensorMeta &meta, const SymbolValues &symbols, Memory &memory) {
    for_each_place(meta, symbols, [&](std::int64_t place, std::int64_t from, std::int64_t bytes) {
        memory.resize(std::max(memory.size(), static_cast<std::size_t>(place + bytes)));
        std::memcpy(memory.data() + place, contiguous.data() + from, static_cast<std::size_t>(bytes));
    });
}

HostTensor load_strided(const Memory &memory, const TensorMeta &meta, const SymbolValues &symbols) {
    HostTensor tensor = HostTensor::zeros(meta.dtype, evaluate_all(meta.sizes, symbols));
    for_each_place(meta, symbols, [&](std::int64_t place, std::int64_t to, std::int64_t bytes) {
        if (place + bytes > static_cast<std::int64_t>(memory.size())) {
            throw std::out_of_range("a kernel reads memory that no kernel wrote");
        }
        std::memcpy(tensor.mutable_data() + to, memory.data() + place, static_cast<std::size_t>(bytes));
    });
    return tensor;
}

}  // namespace

ReferenceResult evaluate(const Partition &partition, const Algorithm &algorithm, const std::map<std::string, HostTensor> &inputs,
                         const SymbolValues &symbols) {
    ReferenceResult result;
    std::map<std::string, Memory> memories;
    auto from_element_0 = [](TensorMeta meta) {
        meta.offset = 0;
        return meta;
    };
    for (const TensorInput &input : algorithm.inputs) {
        const HostTensor &given = inputs.at(input.name());
        std::size_t bytes = given.storage_bytes - static_cast<std::size_t>(given.data() - given.storage.get());
        HostTensor contiguous = load_strided(Memory(given.data(), given.data() + bytes), from_element_0(given.meta), symbols);
        store_strided(contiguous, from_element_0(input.meta), symbols, memories[input.name()]);
    }
    for (const KernelCall &call : partition.calls) {
        const Algorithm &kernel = partition.kernels[static_cast<std::size_t>(call.kernel)].algorithm;
        std::map<std::string, HostTensor> given;
        for (std::size_t i = 0; i < call.inputs.size(); i++) {
            given[kernel.inputs[i].name()] = load_strided(memories.at(call.inputs[i]), kernel.inputs[i].meta, symbols);
        }
        ReferenceResult part = evaluate(kernel, given, symbols);
        for (std::size_t i = 0; i < call.outputs.size(); i++) {
            store_strided(part.outputs.at(kernel.outputs[i].name), kernel.outputs[i].meta, symbols, memories[call.outputs[i]]);
        }
        if (part.index_error && !result.index_error) {
            result.index_error = part.index_error;
        }
    }
    for (const TensorOutput &output : algorithm.outputs) {
        result.outputs[output.name] = load_strided(memories[output.name], from_element_0(output.meta), symbols);
    }
    return result;
}

HostTensor tensor(DType type, std::vector<std::int64_t> sizes, const std::vector<double> &values) {
    HostTensor host = HostTensor::zeros(type, std::move(sizes));
    Type halide = to_halide(type);
    for (std::size_t i = 0; i < values.size(); i++) {
        store(host.mutable_data() + i * static_cast<std::size_t>(size_in_bytes(type)), type, convert({values[i], 0}, Halide::Float(64), halide));
    }
    return host;
}

std::vector<double> values_of(const HostTensor &tensor) {
    std::vector<double> values;
    Type type = to_halide(tensor.meta.dtype);
    for (std::int64_t i = 0; i < tensor.meta.elements().value(); i++) {
        Scalar value = load(tensor.data() + i * size_in_bytes(tensor.meta.dtype), tensor.meta.dtype);
        values.push_back(convert(value, type, Halide::Float(64)).f);
    }
    return values;
}

}  // namespace tilewright::tests
