// Windows of MPI_COMM_WORLD, and the refusal of operations that an MPI library cannot do in them.
#pragma once

#include <memory>
#include <string>

#include "messaging/window.hpp"

namespace fablint {

// Collective. Throws an Error where a rank has no memory.
std::unique_ptr<Window> make_mpi_window(Memory& memory, const WindowRequest& request);

// The functions throw a usage error: if MPI_Compare_and_swap of 8 bytes crashes in a window that is created with that
// method, and if both ends of a pair cannot expose their windows to each other at once with that synchronisation.
void refuse_swaps_that_crash(const std::string& win);
void refuse_posts_that_wait(const std::string& sync);

}  // namespace fablint
