#include "lowering/nests/storage.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "dsl/algorithm/analysis.h"
#include "dsl/error.h"
#include "lowering/nests/stage_numbers.h"
#include "lowering/tile_ir/dense_buffer.h"

namespace tilewright {
namespace {

tile::Buffer of_tensor(const std::string &name, const TensorMeta &meta) {
    tile::Buffer buffer;
    buffer.name = name;
    buffer.types = {to_halide(meta.dtype)};
    buffer.extents = meta.sizes;
    buffer.strides = meta.strides;
    buffer.address_offset = meta.offset;
    return buffer;
}

}  // namespace

std::string identifier(const std::string &name) {
    static const std::set<std::string> reserved = {
        "and",       "asm",      "auto",    "bool",     "break",     "case",     "catch",    "char",   "class",   "const",     "continue",
        "default",   "delete",   "do",      "double",   "else",      "enum",     "explicit", "export", "extern",  "false",     "float",
        "for",       "friend",   "goto",    "half",     "if",        "inline",   "int",      "long",   "mutable", "namespace", "new",
        "not",       "operator", "or",      "private",  "protected", "public",   "register", "return", "short",   "signed",    "sizeof",
        "static",    "struct",   "switch",  "template", "this",      "throw",    "true",     "try",    "typedef", "typename",  "union",
        "unsigned",  "using",    "virtual", "void",     "volatile",  "while",    "xor",      "tw",     "thread",  "block",     "status",
        "abs",       "exp",      "log",     "sqrt",     "floor",     "ceil",     "round",    "sin",    "cos",     "tan",       "pow",
        "max",       "min",      "sum",     "any",      "all",       "copysign", "erf",      "tanh",   "sinh",    "cosh",      "div",
        "remainder", "fmod",     "signbit", "isnan",    "isinf",     "index",    "y0",       "y1",     "j0",      "j1",        "jn",
        "yn",        "gamma",    "asinh",   "acosh",    "atanh",
    };
    std::string result;
    for (char c : name) {
        result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) {
        result = "v" + result;
    }
    return reserved.count(result) ? result + "_" : result;
}

Storage::Storage(const Algorithm &algorithm, const Placement &placement) {
    const StageNumbers numbers(algorithm);
    for (std::size_t i = 0; i < algorithm.inputs.size(); ++i) {
        const TensorInput &input = algorithm.inputs[i];
        tile::Buffer buffer = of_tensor(identifier(input.name()), input.meta);
        buffer.binding = tile::Buffer::Binding::input;
        buffer.index = static_cast<int>(i);
        inputs_[input.name()] = buffer;
    }
    for (std::size_t i = 0; i < algorithm.outputs.size(); ++i) {
        const TensorOutput &output = algorithm.outputs[i];
        tile::Buffer buffer = of_tensor(identifier(output.name), output.meta);
        buffer.binding = tile::Buffer::Binding::output;
        buffer.index = static_cast<int>(i);
        stored_[{numbers[output.stage], output.tuple_index}].push_back(buffer);
    }
    // A stage that another nest reads, perhaps through inlined stages, lies in memory.
    std::set<std::pair<int, int>> read_elsewhere;
    for (int reader = 0; reader < static_cast<int>(algorithm.stages.size()); ++reader) {
        if (placement.nest_of[reader] < 0) {
            continue;
        }
        std::vector<int> pending{reader};
        std::set<int> seen{reader};
        while (!pending.empty()) {
            const int at = pending.back();
            pending.pop_back();
            for (const Read &read : reads_of(algorithm.stages[at])) {
                const int producer = read.from_input ? -1 : numbers[read.producer];
                if (producer < 0 || producer == at) {
                    continue;
                }
                if (placement.nest_of[producer] < 0) {
                    if (seen.insert(producer).second) {
                        pending.push_back(producer);
                    }
                } else if (placement.nest_of[producer] != placement.nest_of[reader]) {
                    read_elsewhere.insert({producer, read.tuple_index});
                }
            }
        }
    }
    for (const auto &[stage, tuple_index] : read_elsewhere) {
        const Stage &s = algorithm.stages[stage];
        if (stored_.count({stage, tuple_index})) {
            continue;
        }
        const std::string name = identifier(s.name()) + (s.func.outputs() > 1 ? "_" + std::to_string(tuple_index) : "") + "_kept";
        stored_[{stage, tuple_index}].push_back(scratch(name, s.func.types()[tuple_index], s.extents));
    }
}

const tile::Buffer &Storage::input(const std::string &name) const {
    auto found = inputs_.find(name);
    internal_assert(found != inputs_.end(), "kernel reads '{}', which is none of its inputs", name);
    return found->second;
}

const tile::Buffer &Storage::of(int stage, int tuple_index) const {
    auto found = stored_.find({stage, tuple_index});
    internal_assert(found != stored_.end(), "stage {} is read by another launch and was not stored", stage);
    return found->second.front();
}

std::vector<tile::Buffer> Storage::targets(int stage, int tuple_index) const {
    auto found = stored_.find({stage, tuple_index});
    return found == stored_.end() ? std::vector<tile::Buffer>() : found->second;
}

tile::Buffer Storage::scratch(const std::string &name, Halide::Type type, const std::vector<Extent> &extents, bool zeroed) {
    tile::Buffer buffer = tile::dense_buffer(name, {type}, tile::Memory::global, extents);
    buffer.binding = tile::Buffer::Binding::scratch;
    buffer.index = next_slot_++;
    buffer.zeroed = zeroed;
    return buffer;
}

}  // namespace tilewright
