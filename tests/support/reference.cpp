#include "tests/support/reference.h"

#include <cstring>
#include <stdexcept>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/sort.h"
#include "dsl/error.h"
#include "tests/support/reference_code.h"

namespace tilewright::tests {

namespace hi = Halide::Internal;
using Halide::Expr;
using Halide::Type;

std::vector<std::int64_t> evaluate_all(const std::vector<Extent> &extents, const SymbolValues &symbols) {
    std::vector<std::int64_t> values;
    for (const Extent &extent : extents) {
        values.push_back(extent.evaluate(symbols));
    }
    return values;
}

namespace {

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
        const auto wanted = static_cast<std::size_t>(targets[0]->sizes.back()), first = begin / row * wanted;
        for (std::size_t i = 0; i < wanted; i++) {
            targets[0]->elements[first + i] = input.elements[begin + static_cast<std::size_t>(order[i])];
            targets[1]->elements[first + i] = {0, order[i]};
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
        case DType::boolean:
            return {0, as(std::uint8_t{}) != 0};
        case DType::uint8:
        case DType::float8_e4m3fn:  // algorithms have the bytes (dsl/algorithm/float8.h)
        case DType::float8_e5m2:
            return {0, as(std::uint8_t{})};
        case DType::int8:
            return {0, as(std::int8_t{})};
        case DType::int16:
            return {0, as(std::int16_t{})};
        case DType::int32:
            return {0, as(std::int32_t{})};
        case DType::int64:
            return {0, as(std::int64_t{})};
        case DType::uint16:
            return {0, as(std::uint16_t{})};
        case DType::uint32:
            return {0, as(std::uint32_t{})};
        case DType::uint64:
            return {0, static_cast<std::int64_t>(as(std::uint64_t{}))};
        case DType::float16:
            return {static_cast<double>(static_cast<float>(as(Halide::float16_t{}))), 0};
        case DType::bfloat16:
            return {static_cast<double>(static_cast<float>(as(Halide::bfloat16_t{}))), 0};
        case DType::float32:
            return {as(float{}), 0};
        case DType::float64:
            return {as(double{}), 0};
        default:
            throw std::logic_error("the reference evaluator does not know this element type");
    }
}

void store(std::byte *to, DType type, Scalar value) {
    auto as = [&]<typename T>(T stored) { std::memcpy(to, &stored, sizeof stored); };
    switch (type) {
        case DType::float16:
            as(Halide::float16_t(static_cast<float>(value.f)));
            return;
        case DType::bfloat16:
            as(Halide::bfloat16_t(static_cast<float>(value.f)));
            return;
        case DType::float32:
            as(static_cast<float>(value.f));
            return;
        case DType::float64:
            as(value.f);
            return;
        default:
            std::memcpy(to, &value.i, static_cast<std::size_t>(size_in_bytes(type)));
            return;
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
            store(host.mutable_data() + i * static_cast<std::size_t>(size_in_bytes(output.meta.dtype)), output.meta.dtype,
                  values.elements[i]);
        }
        result.outputs[output.name] = host;
    }
    return result;
}

HostTensor tensor(DType type, std::vector<std::int64_t> sizes, const std::vector<double> &values) {
    HostTensor host = HostTensor::zeros(type, std::move(sizes));
    Type halide = to_halide(type);
    for (std::size_t i = 0; i < values.size(); i++) {
        store(host.mutable_data() + i * static_cast<std::size_t>(size_in_bytes(type)), type,
              convert({values[i], 0}, Halide::Float(64), halide));
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
