// One run: rows in, messages, a run directory and tables out.
#pragma once

#include <string>
#include <vector>

#include "base/errors.hpp"
#include "ranks/team.hpp"
#include "spec/options.hpp"

namespace fablint {

// Collective. `command`: the command line, for the record. Throws an Error when the input is wrong or nothing can be
// written; what goes wrong later is the exit status.
Exit measure(Team& team, const Options& options, const std::vector<std::string>& command);

}  // namespace fablint
