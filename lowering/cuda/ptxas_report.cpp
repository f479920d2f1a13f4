#include <regex>
#include <sstream>

#include "lowering/cuda/compile.h"

namespace tilewright {

namespace {

int number_before(const std::string &line, const char *words) {
    std::smatch match;
    return std::regex_search(line, match, std::regex(std::string("(\\d+) ") + words)) ? std::stoi(match[1]) : 0;
}

}  // namespace

// The lines of one function, in this order:
//   ptxas info    : Compiling entry function 'softmax' for 'sm_90a'
//   ptxas info    : Function properties for softmax
//       40 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
//   ptxas info    : Used 38 registers, used 1 barriers, 40 bytes cumulative stack size, 6144 bytes smem
std::vector<FunctionResources> parse_ptxas_report(const std::string &log) {
    std::vector<FunctionResources> functions;
    std::istringstream lines(log);
    bool properties_of_entry = false;
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_search(line, match, std::regex("Compiling entry function '([^']+)'"))) {
            functions.emplace_back().function = match[1];
        } else if (functions.empty()) {
            continue;
        } else if (std::regex_search(line, match, std::regex("Function properties for '?([A-Za-z0-9_$.]+)'?"))) {
            properties_of_entry = match[1] == functions.back().function;
        } else if (line.find("bytes stack frame") != std::string::npos && properties_of_entry) {
            functions.back().stack_bytes = number_before(line, "bytes stack frame");
            functions.back().spill_stores = number_before(line, "bytes spill stores");
            functions.back().spill_loads = number_before(line, "bytes spill loads");
        } else if (line.find("Used ") != std::string::npos && line.find("registers") != std::string::npos) {
            functions.back().registers = number_before(line, "registers");
            functions.back().shared_bytes = number_before(line, "bytes smem");
        }
    }
    return functions;
}

}  // namespace tilewright
