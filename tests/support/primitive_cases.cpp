#include "tests/support/primitive_cases.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tilewright::tests {

std::vector<PrimitiveCase> read_primitive_cases() {
    std::ifstream file("tests/data/math_primitives.txt");
    REQUIRE(file);
    std::vector<PrimitiveCase> cases;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream head(line);
        std::string type, result_type;
        PrimitiveCase c;
        int count = 0;
        head >> c.op >> type >> result_type >> c.ulps >> count;
        c.type = parse_dtype(type).value();
        c.result_type = parse_dtype(result_type).value();
        for (int i = 0; i < count; i++) {
            std::getline(file, line);
            std::istringstream row(line);
            std::string word;
            for (std::size_t column = 0; row >> word; column++) {
                c.columns.resize(std::max(c.columns.size(), column + 1));
                c.columns[column].push_back(std::stoull(word, nullptr, 16));
            }
        }
        cases.push_back(std::move(c));
    }
    return cases;
}

}  // namespace tilewright::tests
