// The thread level of MPI, as stored in a run: single, funneled, serialized or multiple.
#pragma once

#include <string>

namespace fablint {

// Starts MPI: with `threads` at MPI_THREAD_MULTIPLE, otherwise by MPI_Init, as do the programs that fablint is compared
// with. Libraries use locks above MPI_THREAD_SINGLE (Open MPI 4.1: a quarter of the latency); site settings that raise
// the level of MPI_Init apply here as well. docs/decisions/0005-thread-level.md gives the reason why the watchdog has a
// thread nevertheless.
void start_mpi(int& argc, char**& argv, bool threads);

// The level that the library provides. Requires that MPI is started.
std::string thread_level();

}  // namespace fablint
