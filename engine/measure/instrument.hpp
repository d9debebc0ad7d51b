// Properties of the instrument itself: clock, overhead, skew of the barrier.
#pragma once

#include "base/clock.hpp"
#include "base/json.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

struct Instrument {
    ClockFacts clock{};
    double empty_kernel_s = 0.0;  // per message of the latency kernel on the null transport
    double barrier_skew_s = 0.0;  // spread of the ranks' exits from a barrier, median of several

    Json json(const RankGroup& rank_group, bool oversubscribed) const;
};

// Collective.
Instrument examine_instrument(RankGroup& rank_group, const Clock& clock);

}  // namespace fablint
