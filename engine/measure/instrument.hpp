// Measures the instrument itself.
#pragma once

#include "base/clock.hpp"
#include "output/root.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

// Collective.
Instrument examine_instrument(RankGroup& rank_group, const Clock& clock);

}  // namespace fablint
