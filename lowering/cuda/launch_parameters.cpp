#include "lowering/cuda/launch_parameters.h"

#include <algorithm>

#include "dsl/error.h"
#include "lowering/cuda/body_emitter.h"
#include "lowering/cuda/expression_printer.h"
#include "lowering/tile_ir/walk.h"
#include "runtime/pixel_map.h"

namespace tilewright {
namespace {

std::string parameter_type(const tile::Launch &launch, const tile::Buffer &buffer) {
    bool read = false, written = false;
    tile::visit_statements(launch.body, [&](const tile::Statement &s) {
        const auto reads = tile::read_buffers(s), writes = tile::written_buffers(s);
        read = read || std::find(reads.begin(), reads.end(), buffer.name) != reads.end();
        written = written || std::find(writes.begin(), writes.end(), buffer.name) != writes.end();
    });
    const char *kind = !written ? "in" : read ? "inout" : "out";
    return fmt::format("tw::{}<{}>", kind, cuda_type(buffer.types[0]));
}

}  // namespace

LaunchParameters launch_parameters(const tile::Launch &launch, int inputs) {
    LaunchParameters result;
    auto add = [&](const std::string &declaration, const std::string &comment) {
        result.declarations += fmt::format("{}    {}{}", result.declarations.empty() ? "" : ",\n", declaration,
                                           comment.empty() ? "" : "  /* " + comment + " */");
    };
    for (const tile::Buffer &buffer : launch.buffers) {
        if (buffer.memory == tile::Memory::descriptor) {
            const auto sizes = buffer.map.sizes.begin();
            add("const __grid_constant__ tw::tensor_map " + cuda_name(buffer.name),
                to_string(std::vector<Extent>(sizes, sizes + static_cast<std::ptrdiff_t>(rank_of(buffer.map)))) + " innermost first");
            TensorMapArgument map = buffer.map;
            map.buffer = buffer.binding == tile::Buffer::Binding::output ? inputs + buffer.index : buffer.index;
            result.arguments.push_back(map);
        }
        if (buffer.memory != tile::Memory::global) {
            continue;
        }
        const bool plain = buffer.strides == contiguous_strides(buffer.extents);
        add(parameter_type(launch, buffer) + " " + cuda_name(buffer.name),
            to_string(buffer.extents) + (plain ? "" : " strides " + to_string(buffer.strides)));
        switch (buffer.binding) {
            case tile::Buffer::Binding::input:
                result.arguments.push_back(BufferArgument{buffer.index, false, std::nullopt});
                break;
            case tile::Buffer::Binding::output:
                result.arguments.push_back(BufferArgument{inputs + buffer.index, true, std::nullopt});
                break;
            default: {
                const Extent bytes = product(buffer.extents) * static_cast<std::int64_t>(buffer.types[0].bytes());
                result.arguments.push_back(ScratchArgument{bytes, buffer.zeroed, buffer.index});
            }
        }
    }
    for (const std::string &symbol : launch.symbols) {
        add("int " + symbol, "");
        result.arguments.push_back(ScalarArgument{Extent::symbol(symbol), 4});
    }
    if (launch.checks_indices) {
        add("tw::status *status", "");
        result.arguments.push_back(StatusArgument{});
    }
    return result;
}

}  // namespace tilewright
