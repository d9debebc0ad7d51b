// The kinds of option values of registry/options.inc: how each is read from text and written as text. `write` returns
// nothing where the option is absent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/table.hpp"
#include "base/values.hpp"
#include "memories/memory.hpp"
#include "messaging/transport.hpp"
#include "patterns/pattern.hpp"

namespace fablint::kind {

using Text = const std::string&;
using OptionalText = std::optional<std::string>;

// For options that are held as text.
struct Written {
    static constexpr bool argument = true;
    static OptionalText write(Text value, const char*) { return value.empty() ? OptionalText() : value; }
};

struct text : Written {
    static std::string read(const char*, const char*, Text value) { return value; }
};

struct label : Written {
    static std::string read(const char* option, const char*, Text value) { return parse_label(option, value); }
};

struct pattern : Written {
    static std::string read(const char*, const char*, Text value) { return pattern_named(value).name; }
};

struct transport : Written {
    static std::string read(const char*, const char*, Text value) { return transport_named(value).name; }
};

struct memory : Written {
    static std::string read(const char*, const char*, Text value) {
        memory_named(value);  // throws for a name or a parameter that does not exist
        return value;
    }
};

struct win : Written {
    static std::string read(const char*, const char*, Text value) { return win_named(value).name; }
};

struct sync : Written {
    static std::string read(const char*, const char*, Text value) { return sync_named(value).name; }
};

struct word : Written {
    static std::string read(const char* option, const char* values, Text value) {
        if (!has_word(values, value))
            throw usage_error(std::string("unknown ") + option + " '" + value + "': choose one of " + values);
        return value;
    }
};

struct flag {
    static constexpr bool argument = false;
    static bool read(const char*, const char*, Text) { return true; }
    static OptionalText write(bool value, const char*) { return value ? OptionalText("") : OptionalText(); }
};

// One of two words: true for the second.
struct choice {
    static constexpr bool argument = true;
    static bool read(const char* option, const char* values, Text value) {
        const std::vector<std::string> words = split(values, ' ');
        if (value != words[0] && value != words[1])
            throw usage_error(std::string("unknown ") + option + " '" + value + "': choose " + words[0] + " or " +
                              words[1]);
        return value == words[1];
    }
    static OptionalText write(bool second, const char* values) { return split(values, ' ')[second ? 1 : 0]; }
};

// For options that are held as numbers, and may be absent.
struct Number {
    static constexpr bool argument = true;
    template <typename Value>
    static OptionalText write(const Value& value, const char*) {
        return to_text(value);
    }
    template <typename Value>
    static OptionalText write(const std::optional<Value>& value, const char*) {
        return value ? OptionalText(to_text(*value)) : OptionalText();
    }
};

struct count : Number {
    static int read(const char* option, const char*, Text value) { return parse_count(option, value, 1); }
};

struct whole : Number {
    static std::int64_t read(const char* option, const char*, Text value) { return parse_integer(option, value, 1); }
};

struct natural : Number {
    static std::int64_t read(const char* option, const char*, Text value) { return parse_integer(option, value, 0); }
};

struct counts : Number {
    static BySize<std::int64_t> read(const char* option, const char*, Text value) {
        return parse_by_size(option, value, 1);
    }
};

struct naturals : Number {
    static BySize<std::int64_t> read(const char* option, const char*, Text value) {
        return parse_by_size(option, value, 0);
    }
};

struct seconds : Number {
    static double read(const char* option, const char*, Text value) { return parse_positive(option, value); }
};

struct fraction : Number {
    static double read(const char* option, const char*, Text value) { return parse_fraction(option, value); }
};

struct sizes {
    static constexpr bool argument = true;
    static std::vector<std::size_t> read(const char*, const char*, Text value) { return parse_sizes(value); }
    static OptionalText write(const std::vector<std::size_t>& value, const char*) {
        return value.empty() ? OptionalText() : sizes_text(value);
    }
};

struct workers : Number {
    static Workers read(const char* option, const char*, Text value) { return parse_workers(option, value); }
};

// Rounds of a resumed run: an instruction for one launch, which is not written.
struct ranges {
    static constexpr bool argument = true;
    static Ranges read(const char*, const char*, Text value) { return parse_ranges(value); }
    static OptionalText write(const std::optional<Ranges>&, const char*) { return {}; }
};

}  // namespace fablint::kind
