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
    std::vector<RowOptions> rows;  // from the command line; empty when --plan is given
};

// The functions throw a usage error with what is wrong and what to do.
Options parse_run_options(const std::vector<std::string>& words);  // without the rows
Options parse_command_line(const std::vector<std::string>& words);
std::vector<RowOptions> parse_plan(const std::string& text, const std::string& name);

// Names rows without a name after their kernel, with a number if the name is taken; throws a usage error for a name
// that occurs twice.
void name_rows(std::vector<RowOptions>& rows);

std::string help_text();

}  // namespace fablint
