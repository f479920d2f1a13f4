// Statements one by one: loops and conditions with their bodies, stores, loads, folds, calls of the device headers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsl/algorithm/algorithm.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

void BodyEmitter::emit(const tile::For &s) {
    forget_written_in(s.body);
    const std::string extent = extent_text(s.extent), name = cuda_name(s.variable);
    if (s.extent == Extent(1)) {
        constants_.insert(s.variable);
        block(s.body);
        return;
    }
    if (combine_lanes(s) || take_words(s) || add_vectors(s)) {
        return;
    }
    if (!ranges_.count(s.variable) && s.extent.is_constant()) {
        ranges_[s.variable] = {0, s.extent.value() - 1};
    }
    const std::vector<const tile::Store *> rounded = s.level == Level::vector ? rounded_at_end(s) : std::vector<const tile::Store *>();
    const Exchanges outer_exchanges = std::exchange(exchanges_, exchanges_of(s.body));
    open(false);
    scopes_.back().variables.insert(s.variable);
    pack_held(s);
    block(s.body);
    std::vector<std::string> body = close();
    exchanges_ = outer_exchanges;
    declare_wide(rounded);
    if (s.level != Level::loop || s.rolled) {
        line(s.rolled ? "#pragma unroll 1" : "#pragma unroll");
    }
    append_body(fmt::format("for (int {} = 0; {} < {}; ++{})", name, name, extent, name), std::move(body));
    if (s.level == Level::vector) {
        pack_stored(s);
        convert_wide(rounded);
    }
    forget_written_in(s.body);
}

void BodyEmitter::emit(const tile::If &s) {
    const std::string condition = without_parentheses(text_of(s.condition));
    open(true);
    block(s.body);
    append_body("if (" + condition + ")", close());
    forget_written_in(s.body);
}

void BodyEmitter::emit(const tile::Let &s) {
    const Text v = value(s.value);
    const bool shadows = std::any_of(scopes_.begin(), scopes_.end(), [&](const Scope &scope) { return scope.variables.count(s.name) > 0; });
    if (shadows) {
        forget_values();
    }
    line(fmt::format("const {} {} = {};", cuda_type(s.value.type()), cuda_name(s.name), without_parentheses(v.text)));
    scopes_.back().variables.insert(s.name);
    if (auto range = range_of(s.value, ranges_)) {
        ranges_[s.name] = *range;
    }
}

void BodyEmitter::emit(const tile::Store &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.buffer);
    if (wide_.count(&s)) {
        store_wide(s);
        return;
    }
    std::vector<std::string> values;
    for (const Expr &e : s.values) {
        values.push_back(without_parentheses(text_of(e)));
    }
    const std::string target = place(buffer, s.indices).text;
    if (s.atomic) {
        line(fmt::format("tw::atomic_{}({}, {}, {});", name(*s.atomic), cuda_name(s.buffer), offset(buffer, s.indices).text, values[0]));
    } else if (buffer.types.size() > 1) {
        std::string list;
        for (const std::string &v : values) {
            list += (list.empty() ? "" : ", ") + v;
        }
        line(fmt::format("{} = {}{{{}}};", target, type_of(buffer), list));
    } else {
        line(fmt::format("{} = {};", target, values[0]));
    }
    written(s.buffer);
}

std::string BodyEmitter::vector_load(const tile::VectorLoad &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.buffer);
    const std::string first = cuda_name(s.buffer) + ", " + without_parentheses(offset(buffer, s.indices).text);
    if (s.aligned && !s.inside.defined()) {
        return fmt::format("tw::load<{}>({})", s.lanes, first);
    }
    std::vector<Expr> last;
    for (const Extent &extent : buffer.extents) {
        last.push_back(to_halide(extent - 1));
    }
    return fmt::format("tw::load_{}<{}>({}, {} + 1)", s.aligned ? "inside" : "anywhere", s.lanes, first,
                       without_parentheses(offset(buffer, last).text));
}

void BodyEmitter::emit(const tile::VectorLoad &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.buffer);
    const std::string name = cuda_name(s.registers);
    const auto load = [&] {
        const std::string vector = vector_load(s);
        return is_loaded_ahead(*launch_.find_buffer(s.registers))
                   ? fmt::format("tw::reinterpret_bits<{}>({});", words_type(*launch_.find_buffer(s.registers)), vector)
                   : vector + ";";
    };
    const std::string target = s.place.empty() ? name : fmt::format("{}[{}]", name, text_of(s.place[0]));
    if (s.condition.defined()) {
        const std::string condition = without_parentheses(text_of(s.condition));
        line(s.place.empty() ? fmt::format("tw::vec<{}, {}> {} = {{}};", cuda_type(buffer.types[0]), s.lanes, name) : target + " = {};");
        open(true);
        line(target + " = " + load());
        append_body("if (" + condition + ")", close());
    } else {
        line((s.place.empty() ? "const auto " : "") + target + " = " + load());
    }
    written(s.registers);
}

void BodyEmitter::emit(const tile::VectorStore &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.buffer);
    line(fmt::format("tw::{}<{}>({}, {}, {});", s.atomic ? fmt::format("atomic_{}", name(*s.atomic)) : "store", s.lanes,
                     cuda_name(s.buffer), without_parentheses(offset(buffer, s.indices).text), cuda_name(s.registers)));
    written(s.buffer);
}

void BodyEmitter::emit(const tile::Fold &s) {
    const tile::Buffer &buffer = *launch_.find_buffer(s.accumulator);
    const tile::CombinerDefinition &combiner = *launch_.find_combiner(s.combiner);
    const auto *product = s.terms[0].as<hi::Mul>();
    if (buffer.types.size() == 1 && combiner.kind == Combiner::sum && product &&
        (buffer.types[0] == Halide::Float(32) || buffer.types[0] == Halide::Float(64))) {
        // Rounded once, as PyTorch's products are; elsewhere nothing is contracted.
        const std::string a = without_parentheses(text_of(product->a)), b = without_parentheses(text_of(product->b)),
                          target = place(buffer, s.place).text;
        line(fmt::format("{} = tw::fma({}, {}, {});", target, a, b, target));
        written(s.accumulator);
        return;
    }
    if (buffer.types.size() == 1) {
        Substitution operands{{combiner.left[0], tile::read(buffer, s.place)}, {combiner.right[0], s.terms[0]}};
        emit(tile::Store{s.accumulator, s.place, {substitute_variables(combiner.result[0], operands)}});
        return;
    }
    std::string list;
    for (const Expr &e : s.terms) {
        list += (list.empty() ? "" : ", ") + without_parentheses(text_of(e));
    }
    const std::string target = place(buffer, s.place).text;
    line(fmt::format("{} = {}{{}}({}, {}{{{}}});", target, s.combiner, target, type_of(buffer), list));
    written(s.accumulator);
}

void BodyEmitter::emit(const tile::Barrier &s) {
    line(s.scope == tile::Barrier::Scope::warp    ? "tw::sync_warp();"
         : s.scope == tile::Barrier::Scope::block ? "tw::sync_block();"
                                                  : "tw::sync_cluster();");
}

void BodyEmitter::emit(const tile::Exit &) { line("return;"); }

void BodyEmitter::emit(const tile::Comment &s) { line("// " + s.text); }

void BodyEmitter::emit(const tile::Invoke &s) {
    std::string arguments, templates = s.template_type ? cuda_type(*s.template_type) : "";
    for (const tile::Invoke::Argument &a : s.arguments) {
        std::string text;
        if (a.buffer.empty()) {
            text = without_parentheses(text_of(a.scalar));
        } else {
            const tile::Buffer &buffer = *launch_.find_buffer(a.buffer);
            text = cuda_name(a.buffer);
            if (!a.indices.empty()) {
                text += " + " + offset(buffer, a.indices).text;
            }
        }
        arguments += (arguments.empty() ? "" : ", ") + text;
    }
    for (const std::string &t : s.template_arguments) {
        templates += (templates.empty() ? "" : ", ") + t;
    }
    line(fmt::format("tw::{}{}({});", s.function, templates.empty() ? "" : "<" + templates + ">", arguments));
    for (const std::string &buffer : s.writes) {
        written(buffer);
    }
}

}  // namespace tilewright
