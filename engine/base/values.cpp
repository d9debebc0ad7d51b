#include "base/values.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include "base/errors.hpp"
#include "base/row_limits.hpp"

namespace fablint {

namespace {

std::size_t parse_size(const std::string& text) {
    char* end = nullptr;
    const bool digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
    const unsigned long long value = digit ? std::strtoull(text.c_str(), &end, 10) : 0;
    unsigned long long unit = 1;
    if (digit && *end != '\0') {
        const std::size_t power = std::string("KMG").find(static_cast<char>(std::toupper(*end)));
        unit = power == std::string::npos || end[1] != '\0' ? 0 : 1ULL << (10 * (power + 1));
    }
    if (!digit || unit == 0) throw usage_error("size '" + text + "': give bytes such as 8, 64K or 1M (powers of 1024)");
    if (value > row_limits::largest_message / unit) throw usage_error("size '" + text + "': at most 2 GiB - 1");
    return value * unit;
}

}  // namespace

std::vector<std::size_t> parse_sizes(const std::string& text) {
    std::vector<std::size_t> sizes;
    for (const std::string& part : split(text, ',')) {
        const std::vector<std::string> ends = split(part, ':');
        if (ends.size() > 2) throw usage_error("sizes '" + part + "': write a range as 1K:4M");
        const std::size_t first = parse_size(ends.front());
        const std::size_t last = parse_size(ends.back());
        if (last < first) throw usage_error("sizes '" + part + "': the range is empty, write the smaller end first");
        for (std::size_t size = first; size <= last; size = size == 0 ? 1 : size * 2) sizes.push_back(size);
    }
    std::set<std::size_t> seen;
    for (const std::size_t size : sizes)
        if (!seen.insert(size).second) throw usage_error("size " + std::to_string(size) + " is given twice");
    return sizes;
}

std::int64_t parse_integer(const std::string& option, const std::string& text, std::int64_t least) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < least)
        throw usage_error("--" + option + " " + text + ": give a whole number of at least " + std::to_string(least));
    if (errno == ERANGE) throw usage_error("--" + option + " " + text + ": the number is too large");
    return value;
}

int parse_count(const std::string& option, const std::string& text, int least) {
    const std::int64_t value = parse_integer(option, text, least);
    if (value > row_limits::largest_count)
        throw usage_error("--" + option + " " + text + ": at most " + std::to_string(row_limits::largest_count));
    return static_cast<int>(value);
}

double parse_positive(const std::string& option, const std::string& text, bool zero_too) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0.0 || (value == 0.0 && !zero_too))
        throw usage_error("--" + option + " " + text + ": give a number above 0");
    return value;
}

double parse_fraction(const std::string& option, const std::string& text) {
    const double value = parse_positive(option, text);
    if (value >= 1.0) throw usage_error("--" + option + " " + text + ": give a number between 0 and 1");
    return value;
}

BySize<std::int64_t> parse_by_size(const std::string& option, const std::string& text, int least) {
    const std::vector<std::string> counts = split(text, ',');
    if (counts.size() > 2) throw usage_error("--" + option + " " + text + ": one number, or two as 1000,100");
    return {parse_integer(option, counts.front(), least), parse_integer(option, counts.back(), least)};
}

Workers parse_workers(const std::string& option, const std::string& text) {
    const std::vector<std::string> ends = split(text, ':');
    if (ends.size() != 2) throw usage_error("--" + option + " " + text + ": write senders:receivers as 1:2");
    const Workers workers{parse_count(option, ends.front(), 1), parse_count(option, ends.back(), 1)};
    if (std::max(workers.senders, workers.receivers) > row_limits::most_workers)
        throw usage_error("--" + option + " " + text + ": at most " + std::to_string(row_limits::most_workers) +
                          " at each end");
    return workers;
}

std::string parse_label(const std::string& option, const std::string& text) {
    constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (text.empty() || text.find_first_not_of(allowed) != std::string::npos)
        throw usage_error("--" + option + " " + text + ": letters, digits, - and _ only, since it names a folder");
    const bool is_folder =
        text == "checksums" || text == "report" || text == "rounds" || text == "launches" || text == "tables";
    if (is_folder || text.rfind("launch-", 0) == 0)
        throw usage_error("--" + option + " " + text + ": the name is reserved in a run directory, choose another");
    return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    if (text.empty() || text.back() == separator) parts.emplace_back();
    return parts;
}

std::vector<std::pair<std::int64_t, std::int64_t>> parse_ranges(const std::string& text) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    if (text == "none") return ranges;
    for (const std::string& part : split(text, ',')) {
        const std::vector<std::string> ends = split(part, '-');
        const std::int64_t first = parse_integer("only-rounds", ends.front(), 0);
        const std::int64_t last = ends.size() == 2 ? parse_integer("only-rounds", ends.back(), first) : first;
        if (ends.size() > 2) throw usage_error("--only-rounds " + part + ": write ranges as 0-3,17");
        ranges.emplace_back(first, last);
    }
    return ranges;
}

std::string to_text(double value) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
}

std::string to_text(const Ranges& ranges) {
    std::string text;
    for (const auto& [first, last] : ranges) {
        text += (text.empty() ? "" : ",") + std::to_string(first);
        if (last > first) text += "-" + std::to_string(last);
    }
    return text;
}

std::string to_text(const Workers& workers) {
    return std::to_string(workers.senders) + ":" + std::to_string(workers.receivers);
}

std::string sizes_text(const std::vector<std::size_t>& sizes) {
    std::string text;
    for (const std::size_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
    return text;
}

}  // namespace fablint
