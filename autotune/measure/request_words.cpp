#include "autotune/measure/request_words.h"

namespace tilewright {

std::vector<std::string> split_words(const std::string &text, char separator) {
    std::vector<std::string> words(1);
    for (const char c : text) {
        if (c == separator) {
            words.emplace_back();
        } else {
            words.back().push_back(c);
        }
    }
    return words;
}

}  // namespace tilewright
