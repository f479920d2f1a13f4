#include "tests/support/operator_cases.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "dsl/error.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

namespace tilewright::tests {

namespace {

std::vector<double> read_values(std::istringstream &words) {
    std::vector<double> values;
    for (std::string word; words >> word;) {
        values.push_back(std::strtod(word.c_str(), nullptr));
    }
    return values;
}

/// 64-bit integers beyond 2^53 do not pass through a double.
HostTensor read_tensor(const TensorMeta &meta, std::istringstream &words) {
    std::vector<std::int64_t> sizes;
    for (const Extent &size : meta.sizes) {
        sizes.push_back(size.value());
    }
    if (meta.dtype != DType::int64) {
        return tensor(meta.dtype, sizes, read_values(words));
    }
    HostTensor host = HostTensor::zeros(meta.dtype, sizes);
    auto *to = reinterpret_cast<std::int64_t *>(host.mutable_data());
    for (std::string word; words >> word;) {
        *to++ = std::strtoll(word.c_str(), nullptr, 10);
    }
    return host;
}

}  // namespace

std::vector<OperatorCase> operator_cases(std::string_view family) {
    std::ifstream file("tests/data/core_operators.txt");
    std::vector<OperatorCase> cases;
    OperatorCase current;
    std::string graph;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string keyword, name;
        words >> keyword;
        if (keyword == "graph") {
            graph += line.substr(6) + "\n";
            continue;
        }
        if (keyword != "end") {
            words >> name;
        }
        if (keyword == "case") {
            current = {};
            current.name = name;
            graph.clear();
        } else if (keyword == "end") {
            if (current.name.starts_with(std::string(family) + "/")) {
                if (current.program.graph.nodes().empty()) {
                    current.program = program_from(graph);
                }
                cases.push_back(std::move(current));
            }
        } else if (current.name.starts_with(std::string(family) + "/")) {
            if (current.program.graph.nodes().empty()) {
                current.program = program_from(graph);
            }
            const Graph &parsed = current.program.graph;
            if (keyword == "input") {
                current.inputs[name] = read_tensor(parsed.find(name)->tensor(), words);
            } else {
                const Node *output = parsed.output_values().at(static_cast<std::size_t>(std::stoi(name.substr(3)))).node();
                current.expected[name] = read_tensor(output->tensor(), words);
            }
        }
    }
    if (cases.empty()) {
        throw std::runtime_error("tests/data/core_operators.txt has no cases of family " + std::string(family));
    }
    return cases;
}

std::string difference(const HostTensor &actual, const HostTensor &expected, double tolerance, bool signed_zeros) {
    if (actual.meta.dtype != expected.meta.dtype || actual.meta.sizes != expected.meta.sizes) {
        return fmt::format("expected {}, actual {}", expected.meta.to_string(), actual.meta.to_string());
    }
    DType type = expected.meta.dtype;
    tolerance = std::max(tolerance, type == DType::bfloat16 ? 0x1p-7 : type == DType::float16 ? 0x1p-10 : 0);
    std::vector<double> got = values_of(actual), want = values_of(expected);
    for (std::size_t i = 0; i < want.size(); i++) {
        double bound = is_floating_point(type) ? tolerance * std::max(1.0, std::abs(want[i])) : 0;
        bool same = std::isnan(want[i])           ? std::isnan(got[i])
                    : std::isinf(want[i])         ? got[i] == want[i]
                    : want[i] == 0 && got[i] == 0 ? !signed_zeros || std::signbit(got[i]) == std::signbit(want[i])
                                                  : std::abs(got[i] - want[i]) <= bound;
        if (!same) {
            return fmt::format("index {}: expected {}, actual {}", i, want[i], got[i]);
        }
    }
    return "";
}

}  // namespace tilewright::tests
