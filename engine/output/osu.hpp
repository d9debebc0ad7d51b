// Tables in the format of the OSU micro-benchmarks, which scripts all over the field read.
#pragma once

#include <string>
#include <vector>

#include "output/cell.hpp"
#include "spec/options.hpp"

namespace fablint {

// `cells`: those of the leading rank of every pair. Latency: mean over the pairs; bandwidth: the bytes of all pairs in
// one direction (both directions for a mutual kernel) over their mean time, 10^6 bytes/s. Means, as in OSU; at least
// three significant digits.
std::string osu_table(const RowOptions& row, const std::vector<Cell>& cells, int pairs);

}  // namespace fablint
