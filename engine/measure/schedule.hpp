// The rounds of one row: the role of each rank in each round, over all repeats of the pattern.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "output/zarr.hpp"
#include "patterns/pattern.hpp"
#include "ranks/rank_group.hpp"
#include "spec/row.hpp"

namespace fablint {

// With --reconnect: two, so that the difference between the passes over the same connections is known as well.
constexpr int passes_per_connection = 2;

// The roles of this rank in a rounds file, which rank 0 reads: other hosts need not see it; `-` is the standard input.
// Collective. Throws a usage error on all ranks where the file cannot be read or a line is wrong.
RoundRoles read_rounds_file(RankGroup& rank_group, const std::string& name);

class Schedule {
  public:
    // `file_rounds`: what this rank does in the rounds of the rounds file. Throws a usage error where the ranks do not
    // suffice.
    Schedule(const RankGroup& rank_group, const RowOptions& row, const RoundRoles& file_rounds);

    // The pattern of the first repeat. All repeats have the same numbers of groups and peers, and the same background
    // traffic.
    const Pattern& pattern() const { return *patterns_.front(); }

    std::int64_t total() const { return per_repeat_ * repeats_; }  // rounds of all repeats
    std::int64_t repeat_of(std::int64_t round) const { return round / per_repeat_; }
    std::int64_t connection_of(std::int64_t round) const { return repeat_of(round) / passes_per_connection; }
    std::vector<std::int64_t> requested_rounds() const;
    Role role(std::int64_t round) const;  // of this rank
    int slots(std::int64_t round) const { return pattern().slots(round % per_repeat_); }
    bool has_background(std::int64_t round) const;  // do aggressors generate traffic in the round?
    int largest_fan() const;                        // the largest number of peers of this rank
    Grid grid() const;                              // of the stored cells
    std::vector<int> cells_per_round() const;
    // The first peer of this rank that is on another host; nothing where there is none.
    std::optional<int> peer_on_another_host(const std::vector<int>& rank_host) const;

  private:
    const RowOptions& row_;
    int rank_, ranks_;
    std::int64_t repeats_;
    std::vector<std::unique_ptr<Pattern>> patterns_;  // one per repeat
    std::int64_t per_repeat_;
};

}  // namespace fablint
