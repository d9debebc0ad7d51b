// What can be measured, for programs: --list.
#pragma once

#include <string>

namespace fablint {

// One JSON object: kernels, patterns, transports, memories, syncs, wins, benchmarks.
std::string listing();

}  // namespace fablint
