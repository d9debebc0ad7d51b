// Values of options as text and as numbers, and lists as text. A parser throws a usage error that names the option.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/row_limits.hpp"

namespace fablint {

// A count that OSU makes smaller for sizes above 8 KiB.
template <typename Count>
struct BySize {
    Count small{};
    Count large{};
    Count at(std::size_t bytes) const { return bytes > row_limits::largest_small_message ? large : small; }
    template <typename Other>
    operator BySize<Other>() const {
        return {static_cast<Other>(small), static_cast<Other>(large)};
    }
};

// Threads or processes at each end.
struct Workers {
    int senders = 0;
    int receivers = 0;
};

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;  // inclusive

std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least);
int parse_count(const std::string& option, const std::string& text, int least);  // at most row_limits::largest_count
double parse_positive(const std::string& option, const std::string& text, bool zero_too = false);
double parse_fraction(const std::string& option, const std::string& text);  // above 0 and below 1
BySize<std::int64_t> parse_by_size(const std::string& option, const std::string& text, int least);  // N or N,M
Workers parse_workers(const std::string& option, const std::string& text);                          // S:R
std::string parse_label(const std::string& option, const std::string& text);                        // the name of a row
std::vector<std::size_t> parse_sizes(const std::string& text);                                      // 8,1K or 1K:4M
Ranges parse_ranges(const std::string& text);                                                       // 0-3,17 or none

std::vector<std::string> split(const std::string& text, char separator);
std::string to_text(double value);
std::string to_text(const Workers& workers);
std::string to_text(const Ranges& ranges);  // 0-3,17
template <typename Whole>
std::string to_text(Whole value) {
    return std::to_string(value);
}
template <typename Count>
std::string to_text(const BySize<Count>& count) {
    const std::string small = std::to_string(count.small);
    return count.small == count.large ? small : small + "," + std::to_string(count.large);
}
std::string sizes_text(const std::vector<std::size_t>& sizes);

// "eth0, lo"; empty for no names.
inline std::string joined(const std::set<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
}

}  // namespace fablint
