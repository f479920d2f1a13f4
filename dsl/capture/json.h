// JSON documents: exact numbers, limits on depth and size, and access that says what is missing.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dsl/error.h"

namespace tilewright {

/// UserError says what is wrong and at which byte. Nesting is limited to 64.
boost::json::value parse_json(std::string_view text);

const boost::json::object &as_object(const boost::json::value &value, std::string_view what);
const boost::json::array &as_array(const boost::json::value &value, std::string_view what);
std::string_view as_text(const boost::json::value &value, std::string_view what);
std::int64_t as_integer(const boost::json::value &value, std::string_view what);
bool as_boolean(const boost::json::value &value, std::string_view what);
/// Numbers, and the words that stand for infinities and NaN.
double as_number(const boost::json::value &value, std::string_view what);

const boost::json::value &field(const boost::json::object &object, std::string_view name);
/// nullptr where it is missing or null.
const boost::json::value *optional_field(const boost::json::object &object, std::string_view name);
/// An object with one field: the field's name says what the value is.
std::pair<std::string_view, const boost::json::value *> as_variant(const boost::json::value &value, std::string_view what);

/// Puts "context: " before the message of a UserError that `action` throws.
template<typename Context, typename Action> decltype(auto) in_context(Context &&context, Action &&action) {
    try {
        return action();
    } catch (const UserError &error) {
        throw UserError(std::string(context()) + ": " + error.what());
    }
}

}  // namespace tilewright
