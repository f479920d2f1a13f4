// "Did you mean …?": the word of a list that is spelled most like one that is in none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Empty where none is near.
std::string closest(std::string_view word, const std::vector<std::string> &candidates);

/// "did you mean WORD? ", for the front of a repair; empty where none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string> &candidates);

}  // namespace tilewright
