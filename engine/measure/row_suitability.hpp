// Whether the ranks and their memory suffice for a row.
#pragma once

#include "measure/schedule.hpp"
#include "ranks/rank_group.hpp"
#include "spec/options.hpp"

namespace fablint {

// Throws a usage error, the same on all ranks, where the row cannot be measured by these ranks.
void refuse_unsuitable(RankGroup& rank_group, const RowOptions& row, const Schedule& schedule);

// The buffers of a collective grow with the number of ranks: default sizes that do not fit into memory are dropped.
// Throws a usage error where such a size was requested, or the smallest size does not fit.
void drop_sizes_beyond_memory(RowOptions& row, int ranks);

}  // namespace fablint
