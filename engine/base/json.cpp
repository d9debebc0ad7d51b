#include "base/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fablint {

namespace {

// Length of the UTF-8 sequence at `at`; 0 if it is invalid (RFC 3629: no overlong forms, no surrogates).
std::size_t utf8_length(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const unsigned lead = byte(at);
    if (lead < 0x80) return 1;
    const unsigned second = byte(at + 1);
    std::size_t length = 0;
    if (lead >= 0xc2 && lead <= 0xdf) length = 2;
    if (lead >= 0xe0 && lead <= 0xef) length = 3;
    if (lead >= 0xf0 && lead <= 0xf4) length = 4;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xc0U) != 0x80) return 0;
    return length;
}

std::string quote(const std::string& text) {
    std::string quoted = "\"";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        const auto c = static_cast<unsigned char>(text[at]);
        if (length == 0) {
            quoted += "\\ufffd";
        } else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            quoted += escape;
        } else {
            quoted.append(text, at, length);
        }
        at += length == 0 ? 1 : length;
    }
    return quoted + "\"";
}

std::string number(double value) {
    if (!std::isfinite(value)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

}  // namespace

std::string utf8(const std::string& text) {
    std::string valid;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        valid += length == 0 ? "\xef\xbf\xbd" : text.substr(at, length);
        at += std::max<std::size_t>(1, length);
    }
    return valid;
}

Json::Json(double value) : text_(number(value)) {}

Json::Json(const std::string& value) : text_(quote(value)) {}

Json Json::parsed(std::string text) {
    Json json;
    json.text_ = std::move(text);
    return json;
}

JsonObject& JsonObject::add(const std::string& key, const Json& value) {
    if (!members_.empty()) members_ += ',';
    members_ += quote(key) + ':' + value.text();
    return *this;
}

}  // namespace fablint
