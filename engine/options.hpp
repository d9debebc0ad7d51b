// The command line and the plan file: one grammar, one set of row options = one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stop.hpp"

namespace fablint {

struct RowOptions {
    std::string kernel;
    std::string name;
    std::string pattern = "pair";
    std::int64_t matchings = 8;
    std::string rounds_file;
    bool serial = false;
    std::int64_t repeats = 1;
    std::uint64_t seed = 1;
    std::vector<std::size_t> sizes;
    std::optional<int> window;
    int warmup = 10;
    StopRule stop;
    std::optional<std::int64_t> batch;
    std::string transport = "mpi";
    std::string memory = "host";
    bool validate = false;
    bool histogram = false;
    std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> only_rounds;  // inclusive ranges

    // Messages in flight at a size: 64 unless given, but at most 16 MiB, so that buffers stay small.
    int window_for(std::size_t bytes) const;
    bool wants_round(std::int64_t round) const;
    // The plan line with the defaults written out.
    std::string text() const;
};

struct Options {
    enum class Action { run, help, version, list };
    Action action = Action::run;
    std::string output;
    std::string plan;
    bool resume = false;
    std::optional<double> epoch;  // resume: the instant from which `started` counts
    double watchdog_s = 60.0;
    bool private_files = false;
    bool quiet = false;
    std::vector<RowOptions> rows;  // from the command line; empty when --plan is given
};

// All throw a usage error that says what is wrong and what to do.
Options parse_command_line(const std::vector<std::string>& words);
std::vector<RowOptions> parse_plan(const std::string& text, const std::string& name);
std::vector<std::size_t> parse_sizes(const std::string& text);

// Gives rows without a name that of their kernel, numbered where it is taken; refuses names given twice.
void name_rows(std::vector<RowOptions>& rows);

std::string help_text();

}  // namespace fablint
