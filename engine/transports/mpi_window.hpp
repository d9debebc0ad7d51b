// What the MPI library at hand cannot do in windows.
#pragma once

#include <string>

namespace fablint {

// Throws a usage error where MPI_Compare_and_swap of 8 bytes does not survive a window made like that.
void refuse_swaps_that_crash(const std::string& win);

}  // namespace fablint
