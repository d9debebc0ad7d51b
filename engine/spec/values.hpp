// What the values of options look like, as text and as numbers. Those that throw a usage error name the option.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fablint {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;  // inclusive

std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least);
int parse_count(const std::string& option, const std::string& text, int least);  // at most a million
double parse_positive(const std::string& option, const std::string& text, bool zero_too = false);
std::vector<std::size_t> parse_sizes(const std::string& text);  // 8,1K or 1K:4M
Ranges parse_ranges(const std::string& text);                   // 0-3,17 or none

std::vector<std::string> split(const std::string& text, char separator);
std::string number_text(double value);
std::string sizes_text(const std::vector<std::size_t>& sizes);

}  // namespace fablint
