// The traffic that aggressors make beside the victims of a round.
#pragma once

#include <memory>

#include "measure/meeting.hpp"

namespace fablint {

// For one row of the pattern victim-aggressor. Victims start when the traffic flows, and it flows until all are done.
class Traffic {
  public:
    Traffic(Team& team, const Clock& clock, double clock_overhead_s, const Pattern& pattern, bool incast,
            Transport& transport, Memory& memory);

    // An aggressor's part in the round.
    void make(const Seat& seat, std::int64_t round);
    // A victim's.
    void await();
    void leave();

  private:
    Team& team_;
    RowOptions row_;
    std::vector<int> victims_;
    int head_;
    std::unique_ptr<Meeting> meeting_;
};

}  // namespace fablint
