// One run: measures the rows and writes the run directory and tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "measure/instrument.hpp"
#include "measure/run_report.hpp"
#include "ranks/rank_group.hpp"
#include "spec/options.hpp"

namespace fablint {

// Collective. `command`: the command line, which is stored. `instrument`: of this group, examined if it was not before.
// Throws an Error if the input is wrong or the run directory cannot be created; later errors are returned as the exit
// status.
Exit measure(RankGroup& rank_group, const Options& options, const std::vector<std::string>& command, RunReport& report,
             std::optional<Instrument>& instrument);

}  // namespace fablint
