// The rounds of one row: the role of each rank in each round, over all repeats of the pattern.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output/zarr.hpp"
#include "ranks/rank_group.hpp"
#include "spec/row.hpp"

namespace fablint {

// With --reconnect: two, so that the difference between the passes over the same connections is known as well.
constexpr int passes_per_connection = 2;

class Schedule {
  public:
    // `rounds_text`: content of the rounds file. Throws a usage error where the ranks do not suffice.
    Schedule(const RankGroup& rank_group, const RowOptions& row, const std::string& rounds_text);

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
    // The first two ranks that communicate and are on different hosts; nothing where there are none.
    std::optional<std::pair<int, int>> pair_of_hosts(const std::vector<int>& rank_host) const;

  private:
    const RowOptions& row_;
    int rank_, ranks_;
    std::int64_t repeats_;
    std::vector<std::unique_ptr<Pattern>> patterns_;  // one per repeat
    std::int64_t per_repeat_;
};

}  // namespace fablint
