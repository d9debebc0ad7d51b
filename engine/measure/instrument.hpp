// The instrument measures itself, so that every figure can be held against what the measuring costs.
#pragma once

#include "base/clock.hpp"
#include "base/json.hpp"
#include "ranks/team.hpp"

namespace fablint {

struct Instrument {
    ClockFacts clock{};
    double empty_kernel_s = 0.0;  // per message of the latency kernel on the null transport
    double barrier_skew_s = 0.0;  // spread of the ranks' exits from a rendezvous, median of several

    Json json(const Team& team, bool oversubscribed) const;
};

// Collective.
Instrument examine_instrument(Team& team, const Clock& clock);

}  // namespace fablint
