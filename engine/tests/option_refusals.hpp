// Options and plans that the engine refuses, and rows that it takes.
#pragma once

#include <doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "spec/options.hpp"

namespace fablint {

inline std::string refusal(const std::vector<std::string>& words) {
    try {
        parse_command_line(words);
    } catch (const Error& error) {
        CHECK(error.status() == Exit::usage);
        return error.what();
    }
    return "accepted";
}

inline std::string plan_refusal(const std::string& text) {
    try {
        parse_plan(text, "plan.txt");
    } catch (const Error& error) {
        CHECK(error.status() == Exit::usage);
        return error.what();
    }
    return "accepted";
}

inline RowOptions row_of(const std::string& line) { return parse_plan(line, "plan").at(0); }

// The error of one plan line, without where it is.
inline std::string line_refusal(const std::string& line) {
    const std::string where = "plan.txt:1: ";
    const std::string message = plan_refusal(line);
    return message.rfind(where, 0) == 0 ? message.substr(where.size()) : message;
}

using ListOfSizes = std::vector<std::size_t>;

}  // namespace fablint
