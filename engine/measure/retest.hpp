// Retest of the slowest pairs of a row, one pair at a time.
#pragma once

#include <string>
#include <vector>

#include "output/cell.hpp"
#include "ranks/rank_group.hpp"
#include "spec/row.hpp"

namespace fablint {

// The pairs with the largest mean time per message at the largest size, which is how LinkTest ranks pairs.
class SlowestPairs {
  public:
    explicit SlowestPairs(int count) : count_(static_cast<std::size_t>(count)) {}

    void add(const Cell& cell);  // keeps the slowest of this rank
    // Collective: the slowest of all ranks, one per round as --rounds takes them, on all ranks.
    std::string collect(RankGroup& rank_group) const;

  private:
    struct SlowPair {
        float time_s;
        int src, dst;
    };
    static bool is_slower(const SlowPair& a, const SlowPair& b) { return a.time_s > b.time_s; }

    std::size_t count_;
    std::vector<SlowPair> pairs_;
};

// The row that measures the pairs of `rounds` again.
RowOptions retest_row(const RowOptions& row, const std::string& rounds);

}  // namespace fablint
