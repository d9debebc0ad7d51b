// Control messages over MPI, and what the run records about the MPI library. An engine that is built without MPI has
// the same functions; its library is never started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranks/control_channel.hpp"

namespace fablint {

// Starts MPI: with `threads` at MPI_THREAD_MULTIPLE, otherwise by MPI_Init, as do the programs that fablint is compared
// with. Libraries use locks above MPI_THREAD_SINGLE (Open MPI 4.1: a quarter of the latency); site settings that raise
// the level of MPI_Init apply here as well. docs/decisions/0005-thread-level.md gives the reason why the watchdog has a
// thread nevertheless. Throws a usage error in an engine without MPI, and where the loaded library is not of the kind
// that the engine is compiled for.
void start_mpi(int& argc, char**& argv, bool threads);
void end_mpi();  // if it is started
bool is_mpi_started();

// A communicator of its own with all ranks; collective. Requires that MPI is started.
std::unique_ptr<ControlChannel> make_mpi_control();

// Collective over these ranks, which are all that take part in what follows; empty: all ranks.
void choose_mpi_ranks(const std::vector<int>& ranks);

struct MpiLibrary {
    std::string text;          // its own description
    std::string standard;      // 3.1
    std::string thread_level;  // single, funneled, serialized or multiple
    double init_s;             // duration of MPI_Init on this rank
};

std::optional<MpiLibrary> mpi_library();  // none where MPI is not started

// Name, version and path of the loaded library, before MPI starts. Throws as start_mpi() does.
std::string loaded_mpi();

}  // namespace fablint
