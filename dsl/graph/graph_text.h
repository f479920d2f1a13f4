// The words of the printed graph, for its printer and its parser.
#pragma once

#include <array>
#include <cctype>
#include <string_view>

namespace tilewright {

constexpr std::array<std::string_view, 6> opcode_names = {"placeholder", "get_attr",    "call_function",
                                                          "call_method", "call_module", "output"};
constexpr std::array<std::string_view, 4> memory_format_names = {"contiguous", "preserve", "channels_last", "channels_last_3d"};
constexpr std::array<std::string_view, 2> layout_names = {"strided", "other"};

/// Whether a name stands bare; others are quoted.
inline bool is_graph_word(std::string_view text) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) {
        return false;
    }
    for (const char c : text) {
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') {
            return false;
        }
    }
    return true;
}

}  // namespace tilewright
