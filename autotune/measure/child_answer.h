// What the measuring child answers.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

/// "ok a,b c,d": seconds of each of `count` candidates by round. "failed REASON" is thrown as a ChildFailure.
std::vector<std::vector<double>> parse_child_answer(const std::string &answer, std::size_t count);

}  // namespace tilewright
