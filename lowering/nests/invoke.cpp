#include "lowering/nests/invoke.h"

#include <utility>

namespace tilewright {

tile::Invoke::Argument scalar(const Halide::Expr &e) { return {"", {}, e}; }
tile::Invoke::Argument buffer(const std::string &name, std::vector<Halide::Expr> indices) {
    return {name, std::move(indices), Halide::Expr()};
}

tile::Statement invoke(const std::string &function, std::vector<std::string> templates, std::vector<tile::Invoke::Argument> arguments,
                       std::vector<std::string> writes) {
    tile::Invoke call;
    call.function = function;
    call.template_arguments = std::move(templates);
    call.arguments = std::move(arguments);
    call.reads = call.writes = std::move(writes);
    return {call};
}

tile::Statement prefetch_descriptors(const tile::Launch &launch) {
    std::vector<tile::Invoke::Argument> maps;
    for (const tile::Buffer &candidate : launch.buffers) {
        if (candidate.memory == tile::Memory::descriptor) {
            maps.push_back(buffer(candidate.name));
        }
    }
    return invoke("prefetch_maps", {}, maps);
}

}  // namespace tilewright
