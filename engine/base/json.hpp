// JSON values, for writing only: the engine does not read JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fablint {

// A JSON value. It is built from C++ values only and therefore well-formed.
class Json {
  public:
    Json(bool value) : text_(value ? "true" : "false") {}
    Json(int value) : text_(std::to_string(value)) {}
    Json(std::int64_t value) : text_(std::to_string(value)) {}
    Json(std::uint64_t value) : text_(std::to_string(value)) {}
    Json(double value);              // NaN and infinities become null
    Json(const std::string& value);  // bytes that are not UTF-8 become U+FFFD
    Json(const char* value) : Json(std::string(value)) {}
    static Json null() { return parsed("null"); }
    static Json parsed(std::string text);  // `text` is JSON

    template <typename T>
    static Json list(const std::vector<T>& values) {
        std::string text = "[";
        for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? "," : "") + Json(values[i]).text();
        return parsed(text + "]");
    }

    const std::string& text() const { return text_; }

  private:
    Json() = default;
    std::string text_;
};

// The text as UTF-8: bytes that are not become U+FFFD.
std::string utf8(const std::string& text);

class JsonObject {
  public:
    JsonObject& add(const std::string& key, const Json& value);
    Json json() const { return Json::parsed("{" + members_ + "}"); }
    bool empty() const { return members_.empty(); }

  private:
    std::string members_;
};

}  // namespace fablint
