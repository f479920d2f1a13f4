#include "lowering/fusion/free_name.h"

namespace tilewright {

std::string free_name(std::set<std::string> &taken, std::string name) {
    while (!taken.insert(name).second) {
        name += "_";
    }
    return name;
}

}  // namespace tilewright
