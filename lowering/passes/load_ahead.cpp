#include "lowering/passes/load_ahead.h"

#include <functional>
#include <iterator>

#include "dsl/algorithm/algorithm.h"
#include "lowering/passes/at_iteration.h"
#include "lowering/tile_ir/dense_buffer.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {
namespace {

using namespace tile;

/// The statement at another iteration of the loop, with each load replaced.
Statement loads_at(const Launch &launch, const Statement &s, const std::string &loop, const Expr &iteration,
                   const std::function<Statement(const VectorLoad &)> &replace) {
    Statement result = s;
    if (auto *load = result.as<VectorLoad>()) {
        for (Expr &e : load->indices) {
            e = at_iteration(launch, e, loop, iteration);
        }
        for (Expr *condition : {&load->condition, &load->inside}) {
            *condition = condition->defined() ? at_iteration(launch, *condition, loop, iteration) : Expr();
        }
        return replace(*load);
    }
    if (auto *guard = result.as<If>()) {
        guard->condition = at_iteration(launch, guard->condition, loop, iteration);
    }
    if (Block *body = body_of(result)) {
        for (Statement &inner : *body) {
            inner = loads_at(launch, inner, loop, iteration, replace);
        }
    }
    return result;
}

std::string next_name(const std::string &registers) { return registers.substr(0, registers.size() - 4) + "_next.vec"; }

/// The load goes to the registers of the next iteration.
Statement into_next(Launch &launch, VectorLoad load) {
    Buffer next = *launch.find_buffer(load.registers);
    next.name = load.registers = next_name(load.registers);
    if (!launch.find_buffer(next.name)) {
        launch.buffers.push_back(next);
    }
    return {std::move(load)};
}

/// In place of its loads, the statement takes what was loaded ahead.
Statement take_next(const Launch &launch, const Statement &s) {
    Statement result = s;
    if (const auto *load = s.as<VectorLoad>()) {
        const Buffer &held = *launch.find_buffer(load->registers);
        Buffer next = held;
        next.name = next_name(held.name);
        const std::string lane = "copied_lane";
        const std::vector<Expr> place{load->place[0], tile::variable(lane)};
        return {For{lane, load->lanes, Level::unroll, {Statement{Store{held.name, place, {tile::read(next, place)}}}}}};
    }
    if (Block *body = body_of(result)) {
        for (Statement &inner : *body) {
            inner = take_next(launch, inner);
        }
    }
    return result;
}

class Ring {
public:
    Ring(Launch &launch, For &loop, int stages) : launch_(launch), loop_(loop), stages_(stages) {}

    Block run(std::size_t loads) {
        Block before, take, fetch, stay;
        for (std::size_t i = 0; i < loads; ++i) {
            Statement &s = loop_.body[i];
            if (!goes_through(s)) {
                stay.push_back(std::move(s));
                continue;
            }
            take.push_back(loads_at(launch_, s, loop_.variable, now(), [&](const VectorLoad &load) { return from_ring(load); }));
            fetch.push_back(std::move(s));
        }
        if (fetch.empty()) {
            std::move(stay.begin(), stay.end(), loop_.body.begin());
            return {};
        }
        for (int i = 0; i + 1 < stages_; ++i) {
            Block first = fetch_at(fetch, Expr(i));
            if (loop_.extent.is_constant() && i < loop_.extent.value()) {
                std::move(first.begin(), first.end(), std::back_inserter(before));
            } else {
                before.push_back({If{Expr(i) < to_halide(loop_.extent), std::move(first)}});
            }
            before.push_back(call_of("copies_commit"));
        }
        Block body;
        body.push_back(call_of("copies_wait", {std::to_string(stages_ - 2)}));
        std::move(take.begin(), take.end(), std::back_inserter(body));
        body.push_back({If{now() + (stages_ - 1) < to_halide(loop_.extent), fetch_at(fetch, now() + (stages_ - 1))}});
        body.push_back(call_of("copies_commit"));  // an empty one too, so that the wait counts alike
        std::move(stay.begin(), stay.end(), std::back_inserter(body));
        std::move(loop_.body.begin() + static_cast<std::ptrdiff_t>(loads), loop_.body.end(), std::back_inserter(body));
        loop_.body = std::move(body);
        return before;
    }

private:
    Expr now() const { return tile::variable(loop_.variable); }

    bool goes_through(const Statement &s) const {
        bool all = true;
        visit_statements({s}, [&](const Statement &inner) {
            const auto *load = inner.as<VectorLoad>();
            all = all && (!load || goes_past_registers(launch_, *load));
        });
        return all;
    }
    const Buffer &ring_of(const VectorLoad &load) { return own_places(launch_, *launch_.find_buffer(load.registers), stages_); }
    std::vector<Expr> slot(const VectorLoad &load, const Expr &iteration) const {
        return {iteration % stages_, load.place[0], tile::variable("thread.rank") * load.lanes};
    }
    Statement from_ring(VectorLoad load) {
        load.buffer = ring_of(load).name;
        load.indices = slot(load, now());
        load.inside = Expr();
        return {std::move(load)};
    }
    Block fetch_at(const Block &loads, const Expr &iteration) {
        Block result;
        for (const Statement &s : loads) {
            result.push_back(loads_at(launch_, s, loop_.variable, iteration,
                                      [&](const VectorLoad &load) { return copy_of(load, ring_of(load), slot(load, iteration)); }));
        }
        return result;
    }

    Launch &launch_;
    For &loop_;
    const int stages_;
};

}  // namespace

Statement note_of_pipeline(const std::string &loop, const Pipeline &pipeline) {
    return call_of("pipeline", {loop, std::to_string(pipeline.stages), pipeline.place});
}

std::map<std::string, Pipeline> take_pipelines(Launch &launch) {
    std::map<std::string, Pipeline> pipelines;
    std::erase_if(launch.body, [&](const Statement &s) {
        const auto *note = s.as<Invoke>();
        const bool is_note = note && note->function == "pipeline";
        if (is_note) {
            pipelines[note->template_arguments[0]] = {std::stoi(note->template_arguments[1]), note->template_arguments[2]};
        }
        return is_note;
    });
    return pipelines;
}

std::int64_t loaded_bytes(const Launch &launch, const For &loop, std::size_t loads) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < loads; ++i) {
        visit_statements({loop.body[i]}, [&](const Statement &s) {
            if (const auto *load = s.as<VectorLoad>()) {
                const Buffer &held = *launch.find_buffer(load->registers);
                bytes += held.extents[0].value() * held.extents[1].value() * held.types[0].bytes();
            }
        });
    }
    return bytes;
}

Block load_next(Launch &launch, For &loop, std::size_t loads) {
    Block before, body, ahead;
    const auto into = [&](const VectorLoad &load) { return into_next(launch, load); };
    for (std::size_t i = 0; i < loads; ++i) {
        body.push_back(take_next(launch, loop.body[i]));
        before.push_back(loads_at(launch, loop.body[i], loop.variable, Expr(0), into));
        ahead.push_back(loads_at(launch, loop.body[i], loop.variable, tile::variable(loop.variable) + 1, into));
    }
    body.push_back({If{tile::variable(loop.variable) + 1 < to_halide(loop.extent), std::move(ahead)}});
    std::move(loop.body.begin() + static_cast<std::ptrdiff_t>(loads), loop.body.end(), std::back_inserter(body));
    loop.body = std::move(body);
    return before;
}

const Buffer &own_places(Launch &launch, const Buffer &held, int stages) {
    const std::string name = held.name.substr(0, held.name.size() - 4) + "_ahead";
    if (!launch.find_buffer(name)) {
        Buffer places = dense_buffer(name, held.types, Memory::shared, {stages, held.extents[0], launch.threads * held.extents[1]});
        places.alignment = 128;
        places.ordered = true;  // a thread waits for its own copies
        launch.buffers.push_back(places);
    }
    return *launch.find_buffer(name);
}

bool goes_past_registers(const Launch &launch, const VectorLoad &load) {
    const int bytes = load.lanes * launch.find_buffer(load.registers)->types[0].bytes();
    return load.aligned && (bytes == 4 || bytes == 8 || bytes % 16 == 0);
}

Statement copy_of(const VectorLoad &load, const Buffer &to, const std::vector<Expr> &place) {
    Statement copy = call_of(load.inside.defined() ? "copy_inside_ahead" : "copy_ahead", {std::to_string(load.lanes)});
    auto &invoke = *copy.as<Invoke>();
    invoke.arguments = {{to.name, place, {}}, {load.buffer, load.indices, {}}};
    invoke.reads = {load.buffer};
    invoke.writes = {to.name};
    return load.condition.defined() ? Statement{If{load.condition, {std::move(copy)}}} : copy;
}

Statement call_of(const std::string &function, const std::vector<std::string> &template_arguments) {
    Invoke invoke;
    invoke.function = function;
    invoke.template_arguments = template_arguments;
    return {std::move(invoke)};
}

Block load_ring(Launch &launch, For &loop, std::size_t loads, int stages) { return Ring(launch, loop, stages).run(loads); }

}  // namespace tilewright
