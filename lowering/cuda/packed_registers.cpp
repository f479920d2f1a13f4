// The part of BodyEmitter that keeps values of 16 bits two to a register.
#include <algorithm>
#include <utility>

#include "dsl/algorithm/expression.h"
#include "dsl/algorithm/rounding.h"
#include "dsl/error.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/passes/narrow_sum.h"
#include "lowering/tile_ir/walk.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

std::string wide_name(const tile::Store &store) { return cuda_name(store.buffer) + "_wide"; }

/// A vector of 16-bit floats that is stored as a whole.
bool is_stored_vector(const tile::Buffer &buffer) {
    return buffer.name.ends_with(".vec") && buffer.memory == tile::Memory::registers && buffer.extents.size() == 1 &&
           buffer.types[0].is_float() && buffer.types[0].bits() == 16;
}

}  // namespace

/// Values of 16 bits along a vector: two share a register.
bool BodyEmitter::is_packed(const tile::Buffer &buffer) const {
    if (arrays_.count(buffer.name) || buffer.memory != tile::Memory::registers || buffer.types.size() != 1 ||
        buffer.types[0].bits() != 16 || !buffer.types[0].is_float() || buffer.extents.empty()) {
        return false;
    }
    const std::int64_t lanes = buffer.extents.back().is_constant() ? buffer.extents.back().value() : 0;
    const bool is_vector = buffer.name.size() > 4 && buffer.name.substr(buffer.name.size() - 4) == ".vec";
    return !is_vector && (lanes == 2 || lanes == 4 || lanes == 8);
}

/// After a loop over the lanes of a vector: what it has stored becomes whole registers, but for what lives in the loop alone.
void BodyEmitter::pack_stored(const tile::For &lanes) {
    std::set<std::string> done;
    tile::visit_statements(lanes.body, [&](const tile::Statement &s) {
        if (const auto found = declarations_.find(&s); found != declarations_.end()) {
            done.insert(found->second.begin(), found->second.end());
        }
        const auto *store = s.as<tile::Store>();
        const tile::Buffer *buffer = store && !wide_.count(store) ? launch_.find_buffer(store->buffer) : nullptr;
        if (buffer && is_packed(*buffer) && as_variable(store->indices.back()) == lanes.variable && done.insert(store->buffer).second) {
            line(fmt::format("tw::pack({});", vectors_place(*store)));
        }
    });
}

/// Vectors of 16-bit values that are loaded for the next iteration of a loop. They pass from one to the next as words, or the compiler
/// would give each value a register of its own there.
bool BodyEmitter::is_loaded_ahead(const tile::Buffer &buffer) {
    static constexpr std::string_view ending = "_next.vec";
    const std::string_view name = buffer.name;
    return name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending && buffer.types[0].bits() == 16 &&
           buffer.extents.size() == 2 && buffer.extents[1].value() % 2 == 0;
}

std::string BodyEmitter::words_type(const tile::Buffer &buffer) {
    return fmt::format("tw::vec<tw::uint32, {}>", buffer.extents[1].value() / 2);
}

void BodyEmitter::declare_words(const tile::Buffer &buffer) {
    line(fmt::format("{} {}[{}];", words_type(buffer), cuda_name(buffer.name), buffer.extents[0].to_string()));
}

/// A loop that copies the lanes of such a vector. False where it is something else.
bool BodyEmitter::take_words(const tile::For &lanes) {
    const auto *store = lanes.body.size() == 1 ? lanes.body[0].as<tile::Store>() : nullptr;
    const auto *read = store && store->values.size() == 1 ? store->values[0].as<hi::Call>() : nullptr;
    const tile::Buffer *from = read && read->call_type == hi::Call::Halide ? launch_.find_buffer(read->name) : nullptr;
    if (!from || !is_loaded_ahead(*from) || as_variable(read->args[1]) != lanes.variable) {
        return false;
    }
    const tile::Buffer &to = *launch_.find_buffer(store->buffer);
    line(fmt::format("{}[{}] = tw::reinterpret_bits<tw::vec<{}, {}>>({}[{}]);", cuda_name(to.name), text_of(store->indices[0]),
                     cuda_type(to.types[0]), to.extents[1].to_string(), cuda_name(from->name), text_of(read->args[0])));
    written(to.name);
    return true;
}

/// A loop that adds two vectors of 16-bit floats and does nothing else. False where it is something else.
bool BodyEmitter::add_vectors(const tile::For &lanes) {
    const auto *store = lanes.level == Level::vector && lanes.body.size() == 1 ? lanes.body[0].as<tile::Store>() : nullptr;
    const auto sum = store && !store->atomic ? narrow_sum(store->values[0], lanes, launch_) : std::nullopt;
    const auto is_vector = [&](const std::string &name) {
        const tile::Buffer &buffer = *launch_.find_buffer(name);
        return is_packed(buffer) || (buffer.name.ends_with(".vec") && !is_loaded_ahead(buffer));
    };
    const auto vector = [&](const Expr &lane) {
        const auto *read = lane.as<hi::Call>();
        return vectors_place(tile::Store{read->name, read->args, {}});
    };
    if (!sum || !is_whole_vector(*launch_.find_buffer(store->buffer), store->indices, lanes) || !is_vector(store->buffer) ||
        !is_vector(sum->left.as<hi::Call>()->name) || !is_vector(sum->right.as<hi::Call>()->name)) {
        return false;
    }
    line(fmt::format("{} = tw::{}({}, {});", vectors_place(*store), sum->minus ? "subtract_vectors" : "add_vectors", vector(sum->left),
                     vector(sum->right)));
    written(store->buffer);
    return true;
}

/// Loaded once for all passes: registers that are many enough to matter.
void BodyEmitter::find_held() {
    constexpr std::int64_t most_wide = 56;  // values of a thread that may as well stay as floats from pass to pass
    tile::visit_statements(launch_.body, [&](const tile::Statement &s) {
        const auto *load = s.as<tile::VectorLoad>();
        const tile::Buffer *registers = load && !load->place.empty() ? launch_.find_buffer(load->registers) : nullptr;
        if (registers && registers->types[0].bits() == 16 && registers->extents.size() == 2 &&
            registers->extents[0].value() * registers->extents[1].value() > most_wide) {
            held_[registers->name] = false;
        }
    });
}

/// At the start of a pass: without this the compiler would keep what an earlier pass made of the values, at twice the registers.
void BodyEmitter::pack_held(const tile::For &steps) {
    if (steps.level != Level::unroll || held_.empty()) {
        return;
    }
    std::set<std::string> read;
    tile::visit_statements(steps.body, [&](const tile::Statement &s) {
        for (const Expr &e : tile::expressions_of(s)) {
            visit_reads(e, [&](const hi::Call *call) {
                if (held_.count(call->name) && call->args.size() == 2 && as_variable(call->args[0]) == steps.variable &&
                    !as_variable(call->args[1]).empty()) {
                    read.insert(call->name);
                }
            });
        }
    });
    for (const std::string &name : read) {
        if (std::exchange(held_[name], true)) {
            line(fmt::format("tw::pack({}[{}]);", cuda_name(name), cuda_name(steps.variable)));
        }
    }
}

/// The vector that the store writes an element of.
std::string BodyEmitter::vectors_place(const tile::Store &store) {
    tile::Buffer vectors = *launch_.find_buffer(store.buffer);
    vectors.extents.pop_back();
    vectors.strides.pop_back();
    return place(vectors, {store.indices.begin(), store.indices.end() - 1}).text;
}

/// Stores of a loop over lanes that nothing in the loop reads: a single conversion is slow, those of a whole vector go two by two.
std::vector<const tile::Store *> BodyEmitter::rounded_at_end(const tile::For &lanes) {
    std::vector<const tile::Store *> result;
    for (const tile::Statement &s : lanes.body) {
        const auto *store = s.as<tile::Store>();
        const tile::Buffer *buffer = store ? launch_.find_buffer(store->buffer) : nullptr;
        if (!buffer || !(is_packed(*buffer) || is_stored_vector(*buffer)) || as_variable(store->indices.back()) != lanes.variable ||
            !(buffer->extents.back() == lanes.extent) || !before_rounding(store->values[0]).defined()) {
            continue;
        }
        int touched = 0;
        bool declared = false;
        tile::visit_statements(lanes.body, [&](const tile::Statement &inner) {
            const std::vector<std::string> written = tile::written_buffers(inner), read = tile::read_buffers(inner);
            touched += std::count(written.begin(), written.end(), store->buffer) + std::count(read.begin(), read.end(), store->buffer);
            const auto found = declarations_.find(&inner);
            declared =
                declared || (found != declarations_.end() && std::count(found->second.begin(), found->second.end(), store->buffer) > 0);
        });
        if (touched == 1 && !declared) {
            result.push_back(store);
            wide_.insert(store);
        }
    }
    return result;
}

void BodyEmitter::store_wide(const tile::Store &store) {
    line(fmt::format("{}[{}] = {};", wide_name(store), text_of(store.indices.back()),
                     without_parentheses(text_of(before_rounding(store.values[0])))));
}

void BodyEmitter::declare_wide(const std::vector<const tile::Store *> &stores) {
    for (const tile::Store *store : stores) {
        line(fmt::format("tw::vec<float, {}> {};", launch_.find_buffer(store->buffer)->extents.back().to_string(), wide_name(*store)));
    }
}

void BodyEmitter::convert_wide(const std::vector<const tile::Store *> &stores) {
    for (const tile::Store *store : stores) {
        line(fmt::format("{} = tw::convert_vector<{}>({});", vectors_place(*store), cuda_type(launch_.find_buffer(store->buffer)->types[0]),
                         wide_name(*store)));
        written(store->buffer);
    }
}

}  // namespace tilewright
