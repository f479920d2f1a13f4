// Names that no other stage of an algorithm has.
#pragma once

#include <set>
#include <string>

namespace tilewright {

/// `name`, lengthened until it is not among `taken`, to which it is added.
std::string free_name(std::set<std::string> &taken, std::string name);

}  // namespace tilewright
