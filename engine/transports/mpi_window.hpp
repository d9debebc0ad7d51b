// What the MPI library at hand cannot do in windows.
#pragma once

#include <string>

namespace fablint {

// Both throw a usage error: where MPI_Compare_and_swap of 8 bytes crashes in a window made like that, and where both
// ends of a pair cannot expose their windows to each other at once with that synchronisation.
void refuse_swaps_that_crash(const std::string& win);
void refuse_posts_that_wait(const std::string& sync);

}  // namespace fablint
