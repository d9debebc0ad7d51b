// The command line and the plan file, which share the grammar of a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/row.hpp"

namespace fablint {

struct Options {
    bool help = false;
    bool version = false;
    bool list = false;
    bool mpi_library = false;
    std::string output;
    std::string plan;
    bool resume = false;
    std::optional<double> epoch;  // resume: instant from which `started` counts
    double watchdog_s = 60.0;
    bool private_files = false;
    bool counters = false;
    bool threads = false;  // MPI_THREAD_MULTIPLE
    int ranks_per_nic = 0;
    std::string sysfs = "/sys";
    int expect_ranks = 0;  // 0: any number
    bool by_size = false;
    bool skip_refused = false;
    bool quiet = false;
    std::string rendezvous;  // HOST:PORT; empty: MPI connects the ranks
    std::string rank;        // of --rendezvous, as the following options
    int ranks = 0;
    std::string token_file;
    double join_limit_s = 60.0;
    bool supervised = false;
    bool serve = false;
    std::string only_ranks;        // of a request: 0,2,4-7; empty: all
    double idle_limit_s = 600.0;   // of --serve
    std::vector<RowOptions> rows;  // from the command line; empty when --plan is given
};

// The functions throw a usage error with what is wrong and what to do.
Options parse_run_options(const std::vector<std::string>& words);  // without the rows
Options parse_command_line(const std::vector<std::string>& words);
std::vector<RowOptions> parse_plan(const std::string& text, const std::string& name);

// What --serve is asked for: the options of the launch with those of the request, and the latter as words.
struct Request {
    Options options;
    std::vector<std::string> words;
};

// A line of `text` that begins with a hyphen is a run option, with its value after the first space; all others are
// rows.
Request parse_request(const Options& launch, const std::string& text);

// Names rows without a name after their kernel, with a number if the name is taken; throws a usage error for a name
// that occurs twice.
void name_rows(std::vector<RowOptions>& rows);

std::string help_text();

}  // namespace fablint
