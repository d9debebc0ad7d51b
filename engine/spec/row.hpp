// What one row of a plan asks for: one set of row options.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/stop.hpp"
#include "patterns/pattern.hpp"
#include "spec/values.hpp"

namespace fablint {

// A count that OSU makes smaller for sizes above 8 KiB.
template <typename Count>
struct BySize {
    Count small;
    Count large;
    Count at(std::size_t bytes) const { return bytes > 8192 ? large : small; }
};

struct RowOptions {
    std::string kernel;
    std::string name;
    std::string pattern = "pair";
    std::int64_t matchings = 8;
    std::string rounds_file;
    std::string rounds;  // the same in the option itself
    bool serial = false;
    std::int64_t repeats = 1;
    std::uint64_t seed = 1;
    std::vector<std::size_t> sizes;
    bool sizes_given = false;  // else they are the kernel's, as far as memory reaches
    std::optional<int> window;
    BySize<int> warmup{10, 10};
    std::optional<BySize<std::int64_t>> iterations;
    StopRule stop;
    std::optional<std::int64_t> batch;
    bool forward = false;        // pairs: from the lower rank to the higher one only
    bool single_buffer = false;  // all messages of a window in one place
    bool barrier_each = false;   // all ranks meet in a barrier before every sample, as in osu_mbw_mr and osu_multi_lat
    bool loop_mean = false;      // the mean is that of the whole loop, clock readings included, as in osu_put_latency
    int senders = 1;             // workers at each end of latency_mt and latency_mp
    int receivers = 2;
    std::string win = "allocate";
    std::string sync = "flush";
    int servers = 1;
    int server_flight = 128;
    int victims = 0;  // pairs; 0: a tenth of the ranks
    bool incast = true;
    int retest = 0;         // slowest pairs to measure again
    std::string retest_of;  // on the row that does so: name of the row that they were slow in
    std::string transport = "mpi";
    std::string memory = "host";
    bool validate = false;
    bool histogram = false;
    std::optional<Ranges> only_rounds;

    // Messages in flight to each of `fan` peers at a size: 64 unless given, but at most 16 MiB to one peer and 256 MiB
    // to all, so that buffers stay small.
    int window_for(std::size_t bytes, int fan) const;
    int warmup_for(std::size_t bytes) const { return warmup.at(bytes); }
    std::optional<std::int64_t> iterations_for(std::size_t bytes) const;
    bool wants_round(std::int64_t round) const;
    bool wants_nothing() const;
    // The plan line with the defaults written out.
    std::string text() const;
};

// One rule of the grammar: an option, and what its argument does.
template <typename Target>
struct Rule {
    const char* name;
    int letter;  // 0: long form only
    bool argument;
    std::function<void(Target&, const std::string&)> apply;
};

const std::vector<Rule<RowOptions>>& row_rules();

// Fills in the defaults that depend on the kernel, and refuses options that contradict each other. `given`: the names
// of the options that were.
RowOptions finished_row(RowOptions row, const std::string& kernel, const std::set<std::string>& given);

}  // namespace fablint
