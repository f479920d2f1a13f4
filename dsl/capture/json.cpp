#include "dsl/capture/json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

namespace json = boost::json;
using Error = json::error_code;

/// Builds the document. Boost's own parser rounds floating-point numbers to within an ulp or so; weights of models deserve the exact
/// value, so numbers are read again from their digits.
struct Handler {
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = 1 << 16;
    static constexpr std::size_t max_string_size = json::string::max_size();
    using View = json::string_view;

    json::value_stack stack;
    std::string digits;

    bool on_document_begin(Error &) { return true; }
    bool on_document_end(Error &) { return true; }
    bool on_object_begin(Error &) { return true; }
    bool on_object_end(std::size_t count, Error &) {
        stack.push_object(count);
        return true;
    }
    bool on_array_begin(Error &) { return true; }
    bool on_array_end(std::size_t count, Error &) {
        stack.push_array(count);
        return true;
    }
    bool on_key_part(View text, std::size_t, Error &) {
        stack.push_chars(text);
        return true;
    }
    bool on_key(View text, std::size_t, Error &) {
        stack.push_key(text);
        return true;
    }
    bool on_string_part(View text, std::size_t, Error &) {
        stack.push_chars(text);
        return true;
    }
    bool on_string(View text, std::size_t, Error &) {
        stack.push_string(text);
        return true;
    }
    bool on_number_part(View text, Error &) {
        digits.append(text.data(), text.size());
        return true;
    }
    bool on_int64(std::int64_t value, View, Error &) {
        digits.clear();
        stack.push_int64(value);
        return true;
    }
    bool on_uint64(std::uint64_t value, View, Error &) {
        digits.clear();
        stack.push_uint64(value);
        return true;
    }
    bool on_double(double, View text, Error &error) {
        digits.append(text.data(), text.size());
        double value = 0;
        const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (problem == std::errc::result_out_of_range && std::isfinite(value)) {
            value = std::strtod(digits.c_str(), nullptr);  // too small: zero or subnormal
        } else if (problem != std::errc{} || end != digits.data() + digits.size()) {
            error = json::error::exponent_overflow;
            return false;
        }
        digits.clear();
        stack.push_double(value);
        return true;
    }
    bool on_bool(bool value, Error &) {
        stack.push_bool(value);
        return true;
    }
    bool on_null(Error &) {
        stack.push_null();
        return true;
    }
    bool on_comment_part(View, Error &) { return true; }
    bool on_comment(View, Error &) { return true; }
};

[[noreturn]] void wrong(std::string_view what, std::string_view expected, const json::value &value) {
    user_error("{} should be {} but is {}", what, expected,
               std::string_view(json::to_string(value.kind()).data(), json::to_string(value.kind()).size()));
}

}  // namespace

json::value parse_json(std::string_view text) {
    json::parse_options options;
    options.max_depth = 64;
    json::basic_parser<Handler> parser(options);
    parser.handler().stack.reset(json::make_shared_resource<json::monotonic_resource>());
    Error error;
    const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
    std::size_t rest = read;
    while (!error && rest < text.size() && std::string_view(" \t\r\n").find(text[rest]) != std::string_view::npos) {
        ++rest;
    }
    if (error || rest < text.size()) {
        user_error("no valid JSON at byte {}: {}", read, error ? error.message() : "extra text");
    }
    return parser.handler().stack.release();
}

const json::object &as_object(const json::value &value, std::string_view what) {
    if (!value.is_object()) {
        wrong(what, "an object", value);
    }
    return value.get_object();
}

const json::array &as_array(const json::value &value, std::string_view what) {
    if (!value.is_array()) {
        wrong(what, "a list", value);
    }
    return value.get_array();
}

std::string_view as_text(const json::value &value, std::string_view what) {
    if (!value.is_string()) {
        wrong(what, "a string", value);
    }
    return {value.get_string().data(), value.get_string().size()};
}

std::int64_t as_integer(const json::value &value, std::string_view what) {
    if (!value.is_int64()) {
        wrong(what, "a 64-bit integer", value);
    }
    return value.get_int64();
}

bool as_boolean(const json::value &value, std::string_view what) {
    if (!value.is_bool()) {
        wrong(what, "true or false", value);
    }
    return value.get_bool();
}

double as_number(const json::value &value, std::string_view what) {
    if (value.is_double()) {
        return value.get_double();
    }
    if (value.is_int64()) {
        return static_cast<double>(value.get_int64());
    }
    if (value.is_uint64()) {
        return static_cast<double>(value.get_uint64());
    }
    const std::string_view word = as_text(value, what);
    if (word == "Infinity") {
        return std::numeric_limits<double>::infinity();
    }
    if (word == "-Infinity") {
        return -std::numeric_limits<double>::infinity();
    }
    if (word == "NaN") {
        return std::numeric_limits<double>::quiet_NaN();
    }
    wrong(what, "a number", value);
}

const json::value &field(const json::object &object, std::string_view name) {
    const json::value *found = object.if_contains({name.data(), name.size()});
    if (found == nullptr) {
        user_error("the field {} is missing", name);
    }
    return *found;
}

const json::value *optional_field(const json::object &object, std::string_view name) {
    const json::value *found = object.if_contains({name.data(), name.size()});
    return found == nullptr || found->is_null() ? nullptr : found;
}

std::pair<std::string_view, const json::value *> as_variant(const json::value &value, std::string_view what) {
    const json::object &object = as_object(value, what);
    if (object.size() != 1) {
        user_error("{} should have one field but has {}", what, object.size());
    }
    const auto &entry = *object.begin();
    return {{entry.key().data(), entry.key().size()}, &entry.value()};
}

}  // namespace tilewright
