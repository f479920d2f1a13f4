#include "autotune/measure/child_answer.h"

#include <cstdlib>
#include <sstream>

#include "autotune/measure/measuring_child.h"

namespace tilewright {

std::vector<std::vector<double>> parse_child_answer(const std::string &answer, std::size_t count) {
    if (answer.starts_with("failed ")) {
        throw ChildFailure(answer.substr(7));
    }
    std::istringstream words(answer);
    std::string word;
    words >> word;
    std::vector<std::vector<double>> rounds;
    for (std::string list; word == "ok" && words >> list;) {
        std::vector<double> &times = rounds.emplace_back();
        std::istringstream items(list);
        for (std::string item; std::getline(items, item, ',');) {
            times.push_back(std::strtod(item.c_str(), nullptr));
        }
    }
    if (rounds.size() != count) {
        throw ChildFailure("answered \"" + answer + "\"");
    }
    return rounds;
}

}  // namespace tilewright
