#include "lowering/tile_ir/lone_threads.h"

namespace tilewright::tile {

constexpr double worth_sharing = 64;  ///< elements of a block

std::vector<std::string> lone_threads(const Program &program) {
    std::vector<std::string> names;
    for (const Launch &launch : program.launches) {
        double elements = 1;
        for (const Axis &axis : launch.axes) {
            for (const Leaf &leaf : axis.leaves) {
                const bool of_block = leaf.level != Level::grid && leaf.level != Level::cluster;
                elements *= of_block ? static_cast<double>(leaf.extent.bounds(program.symbols).max) : 1;
            }
        }
        if (launch.threads == 1 && elements >= worth_sharing) {
            names.push_back(launch.name);
        }
    }
    return names;
}

}  // namespace tilewright::tile
