// Tables in the format of the OSU micro-benchmarks.
#pragma once

#include <string>
#include <vector>

#include "output/cell.hpp"
#include "spec/options.hpp"

namespace fablint {

// `cells`: those of the leading rank of every pair. Latency: mean over the pairs. Bandwidth: bytes of all pairs in one
// direction (both directions for a bidirectional kernel) divided by their mean time, in 10^6 bytes/s. At least three
// significant digits.
std::string osu_table(const RowOptions& row, const std::vector<Cell>& cells, int pairs);

}  // namespace fablint
