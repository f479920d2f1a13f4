// Recurrent layers over sequences of a known length, unrolled.
#include <algorithm>

#include "lowering/decompose/matmul.h"
#include "lowering/decompose/rules.h"

namespace tilewright {
namespace {

enum class Cell { lstm, gru, rnn_tanh, rnn_relu };

struct State {
    Node *hidden, *cell;  ///< cell is nullptr but for LSTM
};

/// Weights of one layer in one direction; biases and the projection may be nullptr.
struct Weights {
    Node *input, *hidden, *input_bias, *hidden_bias, *projection;
};

std::vector<Node *> gates_of(Builder &b, Node *x, int count) {
    const int dim = rank_of(x) - 1;
    const Extent width = floor_div(sizes_of(x)[dim], count);
    std::vector<Node *> gates;
    for (int i = 0; i < count; ++i) {
        gates.push_back(b.slice(x, dim, width * i, width * (i + 1)));
    }
    return gates;
}

/// One step; `mapped` is the input times its weights plus their bias. Everything between the products is in the compute type.
State step(Builder &b, Cell cell, Node *mapped, const State &state, const Weights &w) {
    const DType type = dtype_of(state.hidden);
    Node *x = b.to_compute(mapped);
    Node *h = b.to_compute(linear(b, state.hidden, w.hidden, w.hidden_bias));
    if (cell == Cell::rnn_tanh || cell == Cell::rnn_relu) {
        Node *sum = b.add(x, h);
        return {b.convert(cell == Cell::rnn_tanh ? b.tanh(sum) : b.maximum(sum, 0.0), type), nullptr};
    }
    if (cell == Cell::gru) {
        const std::vector<Node *> xs = gates_of(b, x, 3);
        const std::vector<Node *> hs = gates_of(b, h, 3);
        Node *reset = b.sigmoid(b.add(xs[0], hs[0]));
        Node *update = b.sigmoid(b.add(xs[1], hs[1]));
        Node *fresh = b.tanh(b.add(xs[2], b.mul(reset, hs[2])));
        Node *old = b.to_compute(state.hidden);
        return {b.convert(b.add(b.mul(b.sub(old, fresh), update), fresh), type), nullptr};
    }
    const std::vector<Node *> gates = gates_of(b, b.add(x, h), 4);
    Node *kept = b.mul(b.sigmoid(gates[1]), b.to_compute(state.cell));
    Node *c = b.add(kept, b.mul(b.sigmoid(gates[0]), b.tanh(gates[2])));
    Node *out = b.convert(b.mul(b.sigmoid(gates[3]), b.tanh(c)), type);
    return {w.projection ? linear(b, out, w.projection, nullptr) : out, b.convert(c, type)};
}

/// Runs one direction of one layer over [time, batch, features].
Node *run_direction(Builder &b, Cell cell, Node *input, State &state, const Weights &w, bool backward) {
    const std::int64_t length = sizes_of(input)[0].value();
    Node *mapped = linear(b, input, w.input, w.input_bias);
    std::vector<Node *> outputs(length);
    for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t t = backward ? length - 1 - i : i;
        state = step(b, cell, b.select(mapped, 0, t), state, w);
        outputs[t] = b.unsqueeze(state.hidden, 0);
    }
    return b.cat(outputs, 0);
}

class Layers {
public:
    Layers(const Arguments &a, Cell cell) : a_(a), cell_(cell), parameters_(a.tensors("params")) {
        layers_ = a.integer("num_layers");
        directions_ = a.flag("bidirectional", false) ? 2 : 1;
        biases_ = a.flag("has_biases", true);
        const std::int64_t each = static_cast<std::int64_t>(parameters_.size()) / std::max<std::int64_t>(layers_ * directions_, 1);
        projection_ = each == (biases_ ? 5 : 3);
        per_direction_ = each;
        if (layers_ < 1 || each < 2 || each * layers_ * directions_ != static_cast<std::int64_t>(parameters_.size())) {
            a.refuse(fmt::format("{} parameters do not make {} layers", parameters_.size(), layers_));
        }
        if (a.flag("train", false) && a.real("dropout", 0) != 0 && layers_ > 1) {
            a.refuse("dropout in training draws random numbers, which is not supported; export the model in eval mode");
        }
    }

    Results run(Builder &b, Node *input, std::vector<Node *> initial) {
        const bool batch_first = a_.flag("batch_first", false);
        const bool unbatched = rank_of(input) == 2;
        Node *x = input;
        if (unbatched) {
            x = b.unsqueeze(x, 1);
            for (Node *&state : initial) {
                state = b.unsqueeze(state, 1);
            }
        } else if (batch_first) {
            x = b.transpose(x, 0, 1);
        }
        if (!sizes_of(x)[0].is_constant()) {
            a_.refuse(
                fmt::format("a recurrent layer is unrolled over its sequence, whose length here is the symbol {}; export it with a fixed "
                            "length",
                            sizes_of(x)[0].to_string()));
        }
        std::vector<Node *> hidden, cells;
        for (std::int64_t layer = 0; layer < layers_; ++layer) {
            std::vector<Node *> outputs;
            for (std::int64_t direction = 0; direction < directions_; ++direction) {
                const std::int64_t place = layer * directions_ + direction;
                State state{b.select(initial[0], 0, place), initial.size() > 1 ? b.select(initial[1], 0, place) : nullptr};
                outputs.push_back(run_direction(b, cell_, x, state, weights(place), direction == 1));
                hidden.push_back(b.unsqueeze(state.hidden, 0));
                cells.push_back(state.cell ? b.unsqueeze(state.cell, 0) : nullptr);
            }
            x = b.cat(outputs, rank_of(x) - 1);
        }
        const auto joined = [&](const std::vector<Node *> &states) {
            Node *all = b.cat(states, 0);
            return unbatched ? b.squeeze(all, {1}) : all;
        };
        Node *out = unbatched ? b.squeeze(x, {1}) : batch_first ? b.transpose(x, 0, 1) : x;
        if (cell_ == Cell::lstm) {
            return {out, joined(hidden), joined(cells)};
        }
        return {out, joined(hidden)};
    }

private:
    Weights weights(std::int64_t place) const {
        const auto first = parameters_.begin() + place * per_direction_;
        Weights w{first[0], first[1], nullptr, nullptr, nullptr};
        if (biases_) {
            w.input_bias = first[2];
            w.hidden_bias = first[3];
        }
        if (projection_) {
            w.projection = first[per_direction_ - 1];
        }
        return w;
    }

    const Arguments &a_;
    Cell cell_;
    std::vector<Node *> parameters_;
    std::int64_t layers_ = 1, directions_ = 1, per_direction_ = 4;
    bool biases_ = true, projection_ = false;
};

Rule layer_rule(Cell cell) {
    return [=](Builder &b, const Arguments &a) {
        const std::vector<Node *> initial = cell == Cell::lstm ? a.tensors("hx") : std::vector<Node *>{a.tensor("hx")};
        return Layers(a, cell).run(b, a.tensor("input"), initial);
    };
}

Rule cell_rule(Cell cell) {
    return [=](Builder &b, const Arguments &a) -> Results {
        const std::vector<Node *> given = cell == Cell::lstm ? a.tensors("hx") : std::vector<Node *>{a.tensor("hx")};
        const Weights w{a.tensor("w_ih"), a.tensor("w_hh"), a.optional_tensor("b_ih"), a.optional_tensor("b_hh"), nullptr};
        const State next =
            step(b, cell, linear(b, a.tensor("input"), w.input, w.input_bias), {given[0], given.size() > 1 ? given[1] : nullptr}, w);
        if (cell == Cell::lstm) {
            return {next.hidden, next.cell};
        }
        return next.hidden;
    };
}

}  // namespace

void add_rnn_rules(RuleTable &table) {
    table.add("aten.lstm.input", layer_rule(Cell::lstm));
    table.add("aten.gru.input", layer_rule(Cell::gru));
    table.add("aten.rnn_tanh.input", layer_rule(Cell::rnn_tanh));
    table.add("aten.rnn_relu.input", layer_rule(Cell::rnn_relu));
    table.add("aten.lstm_cell.default", cell_rule(Cell::lstm));
    table.add("aten.gru_cell.default", cell_rule(Cell::gru));
    table.add("aten.rnn_tanh_cell.default", cell_rule(Cell::rnn_tanh));
    table.add("aten.rnn_relu_cell.default", cell_rule(Cell::rnn_relu));
}

}  // namespace tilewright
