// The part of BodyEmitter that prints values: numbering, hoisting, conditional loads.
#include <algorithm>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/passes/operation.h"
#include "lowering/passes/wide_access.h"

namespace tilewright {

namespace hi = Halide::Internal;
using Halide::Expr;
using tile::Level;

namespace {

constexpr std::size_t longest_line = 90;

bool is_checked_index(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    return call && math::primitive_name(call) == "checked_index";
}

/// Whether an element of 8 bits of a vector that was loaded whole becomes a float.
bool converts_byte(const Expr &e) {
    const auto *call = e.as<hi::Call>();
    const auto *read =
        call && e.type() == Halide::Float(32) && math::primitive_name(call) == "convert" ? call->args[0].as<hi::Call>() : nullptr;
    return read && read->call_type == hi::Call::Halide && read->name.ends_with(".vec") && read->type.bits() == 8;
}
std::string lane_conversion(const std::string &element) {
    const std::size_t bracket = element.rfind('[');
    return fmt::format("tw::convert_lane<float>({}, {})", element.substr(0, bracket),
                       element.substr(bracket + 1, element.size() - bracket - 2));
}

}  // namespace

BodyEmitter::Text BodyEmitter::value(const Expr &e) {
    std::string condition;
    for (const std::string &c : conditions_) {
        condition += "&" + c;
    }
    const auto key = std::pair<const void *, std::string>(e.get(), condition);
    if (auto found = seen_.find(key); found != seen_.end()) {
        return found->second;
    }
    Text text = value_uncached(e);
    text.source = e;
    seen_[key] = text;
    return text;
}

BodyEmitter::Text BodyEmitter::value_uncached(const Expr &e) {
    if (const auto *op = e.as<hi::Variable>()) {
        return variable(op->name);
    }
    if (e.as<hi::IntImm>() || e.as<hi::UIntImm>() || e.as<hi::FloatImm>()) {
        return {cuda_literal(e), 0, {}, false, true};
    }
    if (const auto *op = e.as<hi::Select>()) {
        return selection(op);
    }
    if (const auto *op = e.as<hi::Call>(); op && op->call_type == hi::Call::Halide) {
        return read(op);
    }
    return operation(e);
}

/// Joins operands: the innermost scope of all, everything they read.
BodyEmitter::Text BodyEmitter::operation(const Expr &e) {
    Text result;
    result.simple = false;
    std::vector<std::string> operands;
    for (const Expr &operand : operands_of(e)) {
        const Text part = value(operand);
        operands.push_back(part.text);
        result.scope = std::max(result.scope, part.scope);
        result.reads.insert(part.reads.begin(), part.reads.end());
        result.pinned = result.pinned || part.pinned;
        result.zeroed = part.zeroed && operation_of(e).name == "convert";
    }
    if (is_checked_index(e)) {
        result.text = fmt::format("tw::checked_index(status, {}, {}, {}, {})", without_parentheses(operands[0]),
                                  without_parentheses(operands[1]), operands[2], operands[3]);
        result.pinned = true;
        return named(conditional(result, e), "int", "place");
    }
    result.text = converts_byte(e) ? lane_conversion(operands[0]) : cuda_operation(e, operands, ranges_);
    const bool shared = uses_[e.get()] > 1, call = e.as<hi::Call>() != nullptr;
    if (shared || result.text.size() > longest_line || (call && result.text.size() > longest_line * 2 / 3)) {
        return named(result, cuda_type(e.type()), "");
    }
    return result;
}

/// A load or check that is wanted only under conditions: 0 where they do not hold.
BodyEmitter::Text BodyEmitter::conditional(Text load, const Expr &e) {
    if (conditions_.empty()) {
        return load;
    }
    std::string condition;
    for (const std::string &c : conditions_) {
        condition += (condition.empty() ? "" : " && ") + c;
    }
    const std::string zero = e.type().is_bfloat() || (e.type().is_float() && e.type().bits() == 16) ? cuda_type(e.type()) + "{}"
                                                                                                    : cuda_literal(hi::make_zero(e.type()));
    load.text = fmt::format("({} ? {} : {})", condition, load.text, zero);
    load.scope = static_cast<int>(scopes_.size()) - 1;
    load.zeroed = true;
    return load;
}

BodyEmitter::Text BodyEmitter::selection(const hi::Select *op) {
    Text condition = value(op->condition);
    if (!condition.simple) {
        condition = named(condition, "bool", "");
    }
    Text result = condition;
    result.simple = false;
    std::string branches[2];
    for (int side = 0; side < 2; ++side) {
        conditions_.push_back(side == 0 ? condition.text : "!" + condition.text);
        const Text part = value(side == 0 ? op->true_value : op->false_value);
        conditions_.pop_back();
        if (side == 0 && part.zeroed && is_positive_zero(op->false_value)) {
            return part;
        }
        branches[side] = part.text;
        result.scope = std::max(result.scope, part.scope);
        result.reads.insert(part.reads.begin(), part.reads.end());
        result.pinned = result.pinned || part.pinned;
    }
    result.text = fmt::format("({} ? {} : {})", condition.text, branches[0], branches[1]);
    if (uses_[op] > 1 || result.text.size() > longest_line) {
        return named(result, cuda_type(op->type), "");
    }
    return result;
}

BodyEmitter::Text BodyEmitter::read(const hi::Call *op) {
    const tile::Buffer *buffer = launch_.find_buffer(op->name);
    internal_assert(buffer, "launch {} reads '{}', which it does not have", launch_.name, op->name);
    Text result = place(*buffer, op->args);
    result.simple = false;
    if (buffer->types.size() > 1) {
        result.text += "._" + std::to_string(op->value_index);
    }
    if (mutable_.count(op->name)) {
        result.reads.insert(op->name);
    }
    if (buffer->memory == tile::Memory::registers) {
        result.scope = static_cast<int>(scopes_.size()) - 1;
        return result;
    }
    result.pinned = true;
    if (!is_inside(launch_, ranges_, *buffer, op->args)) {
        result = conditional(result, Expr(op));
    }
    const bool zeroed = result.zeroed;
    result = named(result, cuda_type(buffer->types[op->value_index]), "");
    result.zeroed = zeroed;
    return result;
}

/// Gives a value a name in the outermost scope where it can stand, or finds the one that it has.
BodyEmitter::Text BodyEmitter::named(Text value, const std::string &type, const std::string &hint) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (auto found = scope->temporaries.find(value.text); found != scope->temporaries.end()) {
            return {found->second.name, found->second.scope, found->second.reads, value.pinned, true};
        }
    }
    int at = value.reads.empty() ? value.scope : static_cast<int>(scopes_.size()) - 1;
    if (value.pinned) {
        for (int i = static_cast<int>(scopes_.size()) - 1; i > at; --i) {
            if (scopes_[i].conditional) {
                at = i;
                break;
            }
        }
    }
    const std::string name = fresh(hint);
    scopes_[at].lines.push_back(fmt::format("const {} {} = {};", type, name, without_parentheses(value.text)));
    scopes_[at].temporaries[value.text] = {name, value.reads, at};
    return {name, at, value.reads, value.pinned, true};
}

// ---- Variables -------------------------------------------------------------------------------------------------------------------

BodyEmitter::Text BodyEmitter::variable(const std::string &name) {
    if (constants_.count(name)) {
        return {"0", 0, {}, false, true};
    }
    for (int i = static_cast<int>(scopes_.size()) - 1; i >= 0; --i) {
        if (scopes_[i].variables.count(name)) {
            return {cuda_name(name), i, {}, false, true};
        }
    }
    if (name == "thread.rank" || name == "block.rank") {
        scopes_[0].variables.insert(name);
        scopes_[0].lines.push_back(fmt::format("const int {} = {};", cuda_name(name),
                                               name == "thread.rank" ? "tw::thread_rank()" : "static_cast<int>(blockIdx.x)"));
        return {cuda_name(name), 0, {}, false, true};
    }
    if (auto leaf = leaves_.find(name); leaf != leaves_.end()) {
        return unit(*leaf->second);
    }
    if (auto found = axes_.find(name); found != axes_.end()) {
        return axis(*found->second, false);
    }
    if (name.size() > 6 && name.substr(name.size() - 6) == ".first") {
        return axis(*axes_.at(name.substr(0, name.size() - 6)), true);
    }
    if (std::find(launch_.symbols.begin(), launch_.symbols.end(), name) != launch_.symbols.end()) {
        return {name, 0, {}, false, true};
    }
    internal_error("launch {}: variable '{}' is not defined", launch_.name, name);
}

/// Defines a leaf that threads or blocks carry out.
BodyEmitter::Text BodyEmitter::unit(const tile::Leaf &leaf) {
    const bool in_block = leaf.level == Level::thread;
    if (leaf.extent == Extent(1)) {
        return {"0", 0, {}, false, true};
    }
    internal_assert(in_block || leaf.level == Level::grid || leaf.level == Level::cluster, "launch {}: loop '{}' is not open here",
                    launch_.name, leaf.name);
    std::string text = variable(in_block ? "thread.rank" : "block.rank").text;
    const Extent whole = in_block ? Extent(launch_.threads) : launch_.blocks;
    const bool outermost = leaf.unit_stride * leaf.extent == whole;
    if (!(leaf.unit_stride == Extent(1))) {
        text += " / " + extent_text(leaf.unit_stride);
    }
    if (!outermost) {
        text += " % " + extent_text(leaf.extent);
    }
    const std::string name = cuda_name(leaf.name);
    scopes_[0].variables.insert(leaf.name);
    scopes_[0].lines.push_back(fmt::format("const int {} = {};", name, text));
    return {name, 0, {}, false, true};
}

/// Defines an axis from its leaves; `first`: without the vector leaf, or the last one where a copy runs along it by vectors.
BodyEmitter::Text BodyEmitter::axis(const tile::Axis &axis, bool first) {
    const bool has_vector =
        std::any_of(axis.leaves.begin(), axis.leaves.end(), [](const tile::Leaf &l) { return l.level == Level::vector; });
    Text result;
    std::string text;
    if (has_vector && !first) {
        result = variable(axis.name + ".first");
        text = result.text;
    }
    for (const tile::Leaf &leaf : axis.leaves) {
        if (has_vector ? first == (leaf.level == Level::vector) : first && &leaf == &axis.leaves.back()) {
            continue;
        }
        if (leaf.extent == Extent(1)) {
            continue;
        }
        const Text part = variable(leaf.name);
        result.scope = std::max(result.scope, part.scope);
        const std::string term = leaf.stride == Extent(1) ? part.text : part.text + " * " + extent_text(leaf.stride);
        text += (text.empty() ? "" : " + ") + term;
    }
    if (axis.shift.defined() && first == has_vector) {
        const Text shift = value(axis.shift);
        result.scope = std::max(result.scope, shift.scope);
        text += " - " + shift.text;
    }
    const std::string name = cuda_name(axis.name + (first ? ".first" : ""));
    Scope &scope = scopes_[result.scope];
    scope.variables.insert(axis.name + (first ? ".first" : ""));
    scope.lines.push_back(fmt::format("const int {} = {};", name, text.empty() ? "0" : text));
    return {name, result.scope, {}, false, true};
}

std::string BodyEmitter::extent_text(const Extent &extent) {
    return extent.is_constant() ? extent.to_string() : text_of(to_halide(extent));
}

// ---- Places ----------------------------------------------------------------------------------------------------------------------

BodyEmitter::Text BodyEmitter::offset(const tile::Buffer &buffer, const std::vector<Expr> &indices) {
    internal_assert(indices.size() == buffer.strides.size(), "launch {}: {} indices for buffer {} of rank {}", launch_.name, indices.size(),
                    buffer.name, buffer.strides.size());
    Expr sum = to_halide(buffer.offset);
    SymbolRanges symbols;
    for (const std::string &symbol : launch_.symbols) {
        symbols[symbol] = ranges_.at(symbol);
    }
    __int128 largest = 0;
    bool narrow = true;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const SymbolRange stride = buffer.strides[i].bounds(symbols), size = buffer.extents[i].bounds(symbols);
        const __int128 reach =
            static_cast<__int128>(std::max(std::abs(stride.min), std::abs(stride.max))) * std::max<std::int64_t>(size.max - 1, 0);
        largest += reach;
        narrow = narrow && largest < (1LL << 31);
    }
    if (narrow) {
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (!(buffer.strides[i] == Extent(0))) {
                sum = sum + (buffer.strides[i] == Extent(1) ? indices[i] : indices[i] * to_halide(buffer.strides[i]));
            }
        }
        return value(join_remainders(simplify_index(sum, ranges_), ranges_));
    }
    Text result{buffer.offset == Extent(0) ? "" : extent_text(buffer.offset), 0, {}, false, false};
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (buffer.strides[i] == Extent(0)) {
            continue;
        }
        const Text index = value(indices[i]);
        result.scope = std::max(result.scope, index.scope);
        result.reads.insert(index.reads.begin(), index.reads.end());
        result.pinned = result.pinned || index.pinned;
        std::string term = "static_cast<tw::int64>(" + without_parentheses(index.text) + ")";
        if (!(buffer.strides[i] == Extent(1))) {
            term += " * " + extent_text(buffer.strides[i]);
        }
        result.text += (result.text.empty() ? "" : " + ") + term;
    }
    result.text = result.text.empty() ? "0" : "(" + result.text + ")";
    return result;
}

BodyEmitter::Text BodyEmitter::place(const tile::Buffer &buffer, const std::vector<Expr> &indices) {
    const std::string name = cuda_name(buffer.name);
    if (buffer.memory == tile::Memory::registers) {
        Text result{name, 0, {}, false, true};
        for (const Expr &index : indices) {
            const Text part = value(index);
            result.text += "[" + without_parentheses(part.text) + "]";
            result.scope = std::max(result.scope, part.scope);
        }
        return result;
    }
    Text result = offset(buffer, indices);
    result.text = name + "[" + without_parentheses(result.text) + "]";
    return result;
}

}  // namespace tilewright
