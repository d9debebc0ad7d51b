// Rows of the tables of registry/, and look-up of their names.
#pragma once

#include <string>

#include "base/errors.hpp"

// An object of a struct after assignments to its members, as `name = "mpi", options = ""`: a row whose fields have
// names. The members are in scope, and C++17 has no designated initialisers.
#define ROW_OF_TABLE(Info, ...)            \
    [] {                                   \
        struct NamedFields : Info {        \
            NamedFields() { __VA_ARGS__; } \
        };                                 \
        return Info(NamedFields());        \
    }()

namespace fablint {

// "a, b or c"
template <typename Table>
std::string names_of(const Table& table) {
    std::string text;
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (i > 0) text += i + 1 == table.size() ? " or " : ", ";
        text += table[i].name;
    }
    return text;
}

// Is `word` one of the words of `text`, which blanks separate?
inline bool has_word(const char* text, const std::string& word) {
    return (" " + std::string(text) + " ").find(" " + word + " ") != std::string::npos;
}

// The row of that name; throws a usage error that lists the choices. `kind` is "kernel", "pattern", ...
template <typename Table>
const typename Table::value_type& row_named(const Table& table, const std::string& name, const std::string& kind) {
    for (const auto& row : table)
        if (row.name == name) return row;
    constexpr std::size_t most_listed = 12;
    const std::string choices = table.size() > most_listed ? "see fablint-engine --list" : "choose " + names_of(table);
    throw usage_error("unknown " + kind + " '" + name + "': " + choices);
}

}  // namespace fablint
