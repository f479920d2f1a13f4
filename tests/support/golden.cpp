#include "tests/support/golden.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tilewright::tests {

void check_golden(const std::string &name, const std::string &text) {
    const std::string path = "tests/golden/" + name;
    if (const char *update = std::getenv("TILEWRIGHT_UPDATE_GOLDENS"); update && *update == '1') {
        std::ofstream(path) << text;
        return;
    }
    std::ifstream file(path);
    INFO("golden file ", path, " (TILEWRIGHT_UPDATE_GOLDENS=1 writes it)");
    REQUIRE(file.good());
    const std::string expected((std::istreambuf_iterator<char>(file)), {});
    std::istringstream expected_lines(expected), actual_lines(text);
    std::string expected_line, actual_line;
    for (int line = 1; std::getline(expected_lines, expected_line) && std::getline(actual_lines, actual_line); ++line) {
        INFO("line ", line);
        REQUIRE(actual_line == expected_line);
    }
    REQUIRE(text == expected);
}

}  // namespace tilewright::tests
