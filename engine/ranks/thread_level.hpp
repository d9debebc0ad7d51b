// At which thread level MPI runs, as it is stored in a run: single, funneled, serialized or multiple.
#pragma once

#include <string>

namespace fablint {

// Starts MPI. With `threads` at MPI_THREAD_MULTIPLE, else by MPI_Init, as the programs that the figures are compared
// with: libraries switch their locks on above MPI_THREAD_SINGLE (Open MPI 4.1: a quarter of the latency), and settings
// of a site that raise the level of MPI_Init hold here as well. docs/decisions/0005-thread-level.md says why the
// watchdog has a thread all the same.
void start_mpi(int& argc, char**& argv, bool threads);

// What the library provides. MPI must run.
std::string thread_level();

}  // namespace fablint
