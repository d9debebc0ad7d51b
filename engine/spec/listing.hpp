// The JSON text of --list.
#pragma once

#include <string>

namespace fablint {

// One JSON object: kernels, patterns, transports, memories, syncs, wins, benchmarks.
std::string listing();

}  // namespace fablint
