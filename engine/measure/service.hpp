// --serve: the ranks stay, and measure what they are asked for, one run or addition to a run after the other.
#pragma once

#include <string>
#include <vector>

#include "measure/run_report.hpp"
#include "ranks/rank_group.hpp"
#include "spec/options.hpp"

namespace fablint {

// Collective. `command`: the command line, which every run stores with the options of its request. `report` gets the
// start and the end of the launch. A request that is refused or incomplete is the last one; returns its status.
Exit serve(RankGroup& rank_group, const Options& options, const std::vector<std::string>& command, RunReport& report);

}  // namespace fablint
