#include "tests/support/hand_written.h"

#include <cmath>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"

namespace tilewright::tests {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

namespace {

using Values = std::vector<float>;

Expr load(const Halide::ImageParam &input, const std::vector<Expr> &at) { return read(input, at); }

Expr at(const Func &func, const std::vector<Expr> &indices, int element = 0) {
    return Halide::Internal::Call::make(func.function(), indices, element);
}

std::vector<Var> vars(int rank) { return argument_vars(rank); }

HostTensor floats(std::vector<std::int64_t> sizes, const Values &values) {
    return tensor_of<float>(DType::float32, std::move(sizes), values);
}

Values from_double(const std::vector<double> &values) { return Values(values.begin(), values.end()); }

}  // namespace

HandWritten pointwise_chain(std::int64_t rows, std::int64_t columns) {
    KernelBuilder b("chain");
    auto x = b.input("x", DType::float32, {rows, columns});
    auto bias = b.input("bias", DType::float32, {columns});
    std::vector<Var> d = vars(2);
    Func sum = named_func("sum"), y = named_func("y");
    sum(d) = load(x, {d[0], d[1]}) + load(bias, {d[1]});
    y(d) = math::tanh(at(sum, {d[0], d[1]})) * at(sum, {d[0], d[1]});
    b.stage(sum, {rows, columns});
    b.stage(y, {rows, columns});
    b.output("y");
    const Values xs = random_floats(rows * columns, 1), bs = random_floats(columns, 2);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < rows * columns; i++) {
        const double s = static_cast<double>(xs[i]) + bs[i % columns];
        expected.push_back(std::tanh(s) * s);
    }
    return {"chain", b.finish(), {floats({rows, columns}, xs), floats({columns}, bs)}, from_double(expected)};
}

HandWritten softmax(std::int64_t rows, std::int64_t columns) {
    KernelBuilder b("softmax");
    auto x = b.input("x", DType::float32, {rows, columns});
    std::vector<Var> d = vars(2), row = vars(1);
    Func row_max = named_func("row_max"), e = named_func("exp"), row_sum = named_func("row_sum"), y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(columns))}), q = reduction_domain({to_halide(Extent(columns))});
    define_reduction(row_max, row, Combiner::maximum, {load(x, {row[0], r[0]})}, r);
    e(d) = math::exp(load(x, {d[0], d[1]}) - at(row_max, {d[0]}));
    define_reduction(row_sum, row, Combiner::sum, {at(e, {row[0], q[0]})}, q);
    y(d) = at(e, {d[0], d[1]}) / at(row_sum, {d[0]});
    b.stage(row_max, {rows}, {columns});
    b.stage(e, {rows, columns});
    b.stage(row_sum, {rows}, {columns});
    b.stage(y, {rows, columns});
    b.output("y");
    const Values xs = random_floats(rows * columns, 3);
    std::vector<double> expected(xs.size());
    for (std::int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (std::int64_t j = 0; j < columns; j++) {
            sum += std::exp(static_cast<double>(xs[i * columns + j]));
        }
        for (std::int64_t j = 0; j < columns; j++) {
            expected[i * columns + j] = std::exp(static_cast<double>(xs[i * columns + j])) / sum;
        }
    }
    return {"softmax", b.finish(), {floats({rows, columns}, xs)}, from_double(expected)};
}

HandWritten layer_norm(std::int64_t rows, std::int64_t columns) {
    KernelBuilder b("layer_norm");
    auto x = b.input("x", DType::float32, {rows, columns});
    std::vector<Var> d = vars(2), row = vars(1);
    Func moments = named_func("moments"), y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(columns))});
    define_reduction(moments, row, Combiner::welford, {load(x, {row[0], r[0]}), Expr(0.0f), Expr(1.0f)}, r);
    Expr variance = at(moments, {d[0]}, 1) / static_cast<float>(columns);
    y(d) = (load(x, {d[0], d[1]}) - at(moments, {d[0]}, 0)) * math::rsqrt(variance + 1e-5f);
    b.stage(moments, {rows}, {columns});
    b.stage(y, {rows, columns});
    b.output("y");
    Values xs = random_floats(rows * columns, 4);
    for (float &v : xs) {
        v += 50;
    }
    std::vector<double> expected(xs.size());
    for (std::int64_t i = 0; i < rows; i++) {
        double mean = 0, square = 0;
        for (std::int64_t j = 0; j < columns; j++) {
            mean += xs[i * columns + j];
        }
        mean /= static_cast<double>(columns);
        for (std::int64_t j = 0; j < columns; j++) {
            square += (xs[i * columns + j] - mean) * (xs[i * columns + j] - mean);
        }
        for (std::int64_t j = 0; j < columns; j++) {
            expected[i * columns + j] = (xs[i * columns + j] - mean) / std::sqrt(square / static_cast<double>(columns) + 1e-5);
        }
    }
    return {"layer_norm", b.finish(), {floats({rows, columns}, xs)}, from_double(expected), 1e-4};
}

HandWritten column_sum(std::int64_t rows, std::int64_t columns) {
    KernelBuilder b("column_sum");
    auto x = b.input("x", DType::float32, {rows, columns});
    std::vector<Var> d = vars(1);
    Func sum = named_func("sum"), y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(rows))});
    define_reduction(sum, d, Combiner::sum, {load(x, {r[0], d[0]})}, r);
    y(d) = at(sum, {d[0]}) * 0.5f;
    b.stage(sum, {columns}, {rows});
    b.stage(y, {columns});
    b.output("y");
    const Values xs = random_floats(rows * columns, 5);
    std::vector<double> expected(columns);
    for (std::int64_t i = 0; i < rows * columns; i++) {
        expected[i % columns] += 0.5 * xs[i];
    }
    return {"column_sum", b.finish(), {floats({rows, columns}, xs)}, from_double(expected), 1e-4};
}

namespace {

struct Product {
    KernelBuilder builder;
    Func dot = named_func("dot");
    Values as, bs;
    std::vector<HostTensor> inputs;
    std::vector<double> sums;

    Product(const std::string &name, std::int64_t m, std::int64_t n, std::int64_t k, bool transposed) : builder(name) {
        auto a = builder.input("a", DType::float32, {m, k});
        auto w = builder.input("w", DType::float32, transposed ? std::vector<Extent>{n, k} : std::vector<Extent>{k, n});
        std::vector<Var> d = vars(2);
        RDom r = reduction_domain({to_halide(Extent(k))});
        Expr weight = transposed ? load(w, {d[1], r[0]}) : load(w, {r[0], d[1]});
        define_reduction(dot, d, Combiner::sum, {load(a, {d[0], r[0]}) * weight}, r);
        builder.stage(dot, {m, n}, {k});
        as = random_floats(m * k, 6);
        bs = random_floats(n * k, 7);
        inputs = {floats({m, k}, as), transposed ? floats({n, k}, bs) : floats({k, n}, bs)};
        sums.resize(m * n);
        for (std::int64_t i = 0; i < m; i++) {
            for (std::int64_t j = 0; j < n; j++) {
                for (std::int64_t q = 0; q < k; q++) {
                    sums[i * n + j] += static_cast<double>(as[i * k + q]) * (transposed ? bs[j * k + q] : bs[q * n + j]);
                }
            }
        }
    }
};

}  // namespace

HandWritten linear_relu(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed) {
    Product p("linear_relu", m, n, k, transposed);
    auto bias = p.builder.input("bias", DType::float32, {n});
    std::vector<Var> d = vars(2);
    Func y = named_func("y");
    y(d) = math::maximum(at(p.dot, {d[0], d[1]}) + load(bias, {d[1]}), Expr(0.0f));
    p.builder.stage(y, {m, n});
    p.builder.output("y");
    const Values bias_values = random_floats(n, 8);
    p.inputs.push_back(floats({n}, bias_values));
    std::vector<double> expected;
    for (std::int64_t i = 0; i < m * n; i++) {
        expected.push_back(std::max(0.0, p.sums[i] + bias_values[i % n]));
    }
    return {transposed ? "linear_relu transposed" : "linear_relu", p.builder.finish(), p.inputs, from_double(expected)};
}

HandWritten product(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed) {
    Product p("product", m, n, k, transposed);
    p.builder.output("dot");
    return {transposed ? "product transposed" : "product", p.builder.finish(), p.inputs, from_double(p.sums)};
}

HandWritten softmax_of_product(std::int64_t m, std::int64_t n, std::int64_t k) {
    Product p("softmax_of_product", m, n, k, true);
    std::vector<Var> d = vars(2), row = vars(1);
    Func row_max = named_func("row_max"), row_sum = named_func("row_sum"), y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(n))}), q = reduction_domain({to_halide(Extent(n))});
    define_reduction(row_max, row, Combiner::maximum, {at(p.dot, {row[0], r[0]})}, r);
    define_reduction(row_sum, row, Combiner::sum, {math::exp(at(p.dot, {row[0], q[0]}) - at(row_max, {row[0]}))}, q);
    y(d) = math::exp(at(p.dot, {d[0], d[1]}) - at(row_max, {d[0]})) / at(row_sum, {d[0]});
    p.builder.stage(row_max, {m}, {n});
    p.builder.stage(row_sum, {m}, {n});
    p.builder.stage(y, {m, n});
    p.builder.output("y");
    std::vector<double> expected(m * n);
    for (std::int64_t i = 0; i < m; i++) {
        double sum = 0, largest = -INFINITY;
        for (std::int64_t j = 0; j < n; j++) {
            largest = std::max(largest, p.sums[i * n + j]);
        }
        for (std::int64_t j = 0; j < n; j++) {
            sum += std::exp(p.sums[i * n + j] - largest);
        }
        for (std::int64_t j = 0; j < n; j++) {
            expected[i * n + j] = std::exp(p.sums[i * n + j] - largest) / sum;
        }
    }
    return {"softmax of product", p.builder.finish(), p.inputs, from_double(expected), 1e-4};
}

HandWritten convolution(std::int64_t channels, std::int64_t outputs, std::int64_t size, int stride, int padding) {
    const std::int64_t taps = 3, places = (size + 2 * padding - taps) / stride + 1;
    KernelBuilder b("convolution");
    auto x = b.input("x", DType::float32, {2, channels, size, size});
    auto w = b.input("w", DType::float32, {outputs, channels, taps, taps});
    std::vector<Var> d = vars(4);
    RDom r = reduction_domain({to_halide(Extent(channels)), Expr(3), Expr(3)});
    Expr place_y = d[2] * stride + r[1] - padding, place_x = d[3] * stride + r[2] - padding;
    const int last = static_cast<int>(size) - 1;
    Expr value = load(x, {d[0], r[0], Halide::min(Halide::max(place_y, 0), last), Halide::min(Halide::max(place_x, 0), last)});
    Expr inside = place_y >= 0 && place_y < last + 1 && place_x >= 0 && place_x < last + 1;
    Func conv = named_func("conv");
    define_reduction(conv, d, Combiner::sum,
                     {Halide::Internal::Select::make(inside, value, Expr(0.0f)) * load(w, {d[1], r[0], r[1], r[2]})}, r);
    b.stage(conv, {2, outputs, places, places}, {channels, taps, taps});
    b.output("conv");
    const Values xs = random_floats(2 * channels * size * size, 9), ws = random_floats(outputs * channels * taps * taps, 10);
    std::vector<double> expected;
    for (std::int64_t n = 0; n < 2; n++) {
        for (std::int64_t o = 0; o < outputs; o++) {
            for (std::int64_t y = 0; y < places; y++) {
                for (std::int64_t z = 0; z < places; z++) {
                    double sum = 0;
                    for (std::int64_t c = 0; c < channels; c++) {
                        for (std::int64_t i = 0; i < taps; i++) {
                            for (std::int64_t j = 0; j < taps; j++) {
                                const std::int64_t py = y * stride + i - padding, px = z * stride + j - padding;
                                if (py >= 0 && py < size && px >= 0 && px < size) {
                                    sum += static_cast<double>(xs[((n * channels + c) * size + py) * size + px]) *
                                           ws[((o * channels + c) * taps + i) * taps + j];
                                }
                            }
                        }
                    }
                    expected.push_back(sum);
                }
            }
        }
    }
    return {"convolution",
            b.finish(),
            {floats({2, channels, size, size}, xs), floats({outputs, channels, taps, taps}, ws)},
            from_double(expected),
            1e-4};
}

HandWritten arg_maximum(std::int64_t rows, std::int64_t columns) {
    KernelBuilder b("arg_maximum");
    auto x = b.input("x", DType::float32, {rows, columns});
    std::vector<Var> row = vars(1);
    Func best = named_func("best"), y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(columns))});
    define_reduction(best, row, Combiner::arg_maximum, {load(x, {row[0], r[0]}), Halide::cast<std::int64_t>(r[0])}, r);
    y(row) = math::convert(Halide::Float(32), at(best, {row[0]}, 1));
    b.stage(best, {rows}, {columns});
    b.stage(y, {rows});
    b.output("y");
    Values xs = random_floats(rows * columns, 11);
    if (rows > 1 && columns > 3) {
        xs[columns + 2] = NAN;  // NaN wins, the first of two
        xs[columns + 3] = NAN;
        xs[1] = xs[3] = 99;  // ties: the first
    }
    Values expected;
    for (std::int64_t i = 0; i < rows; i++) {
        std::int64_t place = 0;
        for (std::int64_t j = 1; j < columns; j++) {
            const float candidate = xs[i * columns + j], held = xs[i * columns + place];
            place = candidate > held || (std::isnan(candidate) && !std::isnan(held)) ? j : place;
        }
        expected.push_back(static_cast<float>(place));
    }
    return {"arg_maximum", b.finish(), {floats({rows, columns}, xs)}, expected, 0};
}

HandWritten cumulative_sum(std::int64_t rows, std::int64_t columns, int axis) {
    KernelBuilder b("cumulative_sum");
    auto x = b.input("x", DType::float32, {rows, columns});
    std::vector<Var> d = vars(2);
    Func y = named_func("y");
    const std::int64_t length = axis == 0 ? rows : columns;
    define_scan(y, d, axis, to_halide(Extent(length)), Combiner::sum, {load(x, {d[0], d[1]})});
    b.stage(y, {rows, columns}, {length});
    b.output("y");
    const Values xs = random_floats(rows * columns, 12);
    std::vector<double> expected(xs.begin(), xs.end());
    for (std::int64_t i = 0; i < rows; i++) {
        for (std::int64_t j = 0; j < columns; j++) {
            if ((axis == 0 ? i : j) > 0) {
                expected[i * columns + j] += expected[axis == 0 ? (i - 1) * columns + j : i * columns + j - 1];
            }
        }
    }
    return {"cumulative_sum", b.finish(), {floats({rows, columns}, xs)}, from_double(expected), 1e-4};
}

HandWritten gather_rows(std::int64_t rows, std::int64_t width, std::int64_t count) {
    KernelBuilder b("gather_rows");
    auto table = b.input("table", DType::float32, {rows, width});
    auto index = b.input("index", DType::int64, {count});
    std::vector<Var> d = vars(2);
    Func y = named_func("y");
    y(d) = load(table, {math::checked_index(load(index, {d[0]}), static_cast<int>(rows), true, 0), d[1]});
    b.stage(y, {count, width});
    b.output("y");
    const Values values = random_floats(rows * width, 13);
    std::vector<std::int64_t> indices;
    Values expected;
    for (std::int64_t i = 0; i < count; i++) {
        indices.push_back(i % 2 == 0 ? (i * 7) % rows : -1 - (i * 5) % rows);
        for (std::int64_t j = 0; j < width; j++) {
            expected.push_back(values[((indices.back() + rows) % rows) * width + j]);
        }
    }
    return {
        "gather_rows", b.finish(), {floats({rows, width}, values), tensor_of<std::int64_t>(DType::int64, {count}, indices)}, expected, 0};
}

HandWritten scatter_add(std::int64_t rows, std::int64_t width, std::int64_t count) {
    KernelBuilder b("scatter_add");
    auto index = b.input("index", DType::int64, {count});
    auto source = b.input("source", DType::float32, {count, width});
    std::vector<Var> d = vars(2);
    Func y = named_func("y");
    RDom r = reduction_domain({to_halide(Extent(count))});
    y(d) = Expr(1.0f);
    Expr place = math::checked_index(load(index, {r[0]}), static_cast<int>(rows), false, 0);
    y.function().define_update({place, d[1]}, {at(y, {place, d[1]}) + load(source, {r[0], d[1]})}, r.domain());
    b.stage(y, {rows, width}, {count});
    b.output("y");
    const Values values = random_floats(count * width, 14);
    std::vector<std::int64_t> indices;
    std::vector<double> expected(rows * width, 1.0);
    for (std::int64_t i = 0; i < count; i++) {
        indices.push_back((i * i) % rows);
        for (std::int64_t j = 0; j < width; j++) {
            expected[indices.back() * width + j] += values[i * width + j];
        }
    }
    return {"scatter_add",
            b.finish(),
            {tensor_of<std::int64_t>(DType::int64, {count}, indices), floats({count, width}, values)},
            from_double(expected),
            1e-4};
}

}  // namespace tilewright::tests
