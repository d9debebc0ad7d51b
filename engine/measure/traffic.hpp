// Background traffic of the aggressors while the victims of a round are measured.
#pragma once

#include <memory>

#include "measure/group_measurement.hpp"

namespace fablint {

// For one row of the pattern victim-aggressor. Victims start after the traffic has started, and it stops after all
// victims have finished.
class Traffic {
  public:
    Traffic(RankGroup& rank_group, const Clock& clock, double clock_overhead_s, const Pattern& pattern, bool incast,
            Transport& transport, Memory& memory);

    // Called by the aggressors.
    void make(const Role& role, std::int64_t round);
    // Called by the victims, before and after their measurement.
    void wait_until_running();
    void leave();

  private:
    RankGroup& rank_group_;
    RowOptions row_;
    std::vector<int> victims_;
    int head_;
    std::unique_ptr<GroupMeasurement> measurement_;
};

}  // namespace fablint
