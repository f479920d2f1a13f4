#include "dsl/closest_word.h"

#include <algorithm>

namespace tilewright {
namespace {

int edit_distance(std::string_view a, std::string_view b) {
    std::vector<int> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = static_cast<int>(j);
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row.back();
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string> &candidates) {
    std::string best;
    int best_distance = static_cast<int>(word.size()) / 3 + 2;  // further away, a guess misleads
    if (word.size() > 64) {
        return best;
    }
    for (const std::string &candidate : candidates) {
        const int distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string> &candidates) {
    const std::string near = closest(word, candidates);
    return near.empty() ? "" : "did you mean " + near + "? ";
}

}  // namespace tilewright
